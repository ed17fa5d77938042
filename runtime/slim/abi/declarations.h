// torch's declarations of the C ABI, under names of our own: a program on the slim runtime may be
// linked with, or load, a library that uses libtorch's functions, and each must call its own.
//
// Files of the slim runtime include this one in place of torch's headers.

#ifndef AOTI_RUNTIME_SLIM_ABI_DECLARATIONS_H_
#define AOTI_RUNTIME_SLIM_ABI_DECLARATIONS_H_

#include <torch/csrc/inductor/aoti_torch/c/macros.h>

#include "runtime/slim/names.h"

// The functions are for the binary that they are linked into alone.
#undef AOTI_TORCH_EXPORT
#define AOTI_TORCH_EXPORT __attribute__((visibility("hidden")))

#include <torch/csrc/inductor/aoti_torch/c/shim.h>
#include <torch/csrc/inductor/aoti_torch/c/shim_cpu.h>
#include <torch/csrc/inductor/aoti_torch/generated/c_shim_aten.h>
#include <torch/csrc/inductor/aoti_torch/generated/c_shim_cpu.h>
#include <torch/csrc/stable/c/shim.h>

#endif  // AOTI_RUNTIME_SLIM_ABI_DECLARATIONS_H_
