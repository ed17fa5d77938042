// torch's declarations of the C ABI, with renamed functions. A program on the slim runtime may be
// linked with, or may load, a library that uses libtorch's functions; each must call its own.
//
// Files of the slim runtime include this header in place of torch's.

#ifndef AOTI_RUNTIME_SLIM_ABI_DECLARATIONS_H_
#define AOTI_RUNTIME_SLIM_ABI_DECLARATIONS_H_

#include <torch/csrc/inductor/aoti_torch/c/macros.h>

#include "runtime/slim/names.h"

// Only the binary that the functions are linked into uses them.
#undef AOTI_TORCH_EXPORT
#define AOTI_TORCH_EXPORT __attribute__((visibility("hidden")))

#include <torch/csrc/inductor/aoti_torch/c/shim.h>
#include <torch/csrc/inductor/aoti_torch/c/shim_cpu.h>
#include <torch/csrc/inductor/aoti_torch/generated/c_shim_aten.h>
#include <torch/csrc/inductor/aoti_torch/generated/c_shim_cpu.h>
#include <torch/csrc/stable/c/shim.h>

#endif  // AOTI_RUNTIME_SLIM_ABI_DECLARATIONS_H_
