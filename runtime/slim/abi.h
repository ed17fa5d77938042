// torch's declarations of the C ABI, hidden: a program with the slim runtime in it may well load a
// library that uses libtorch's functions of the same names, and must not get in their way.
//
// Files of the slim runtime include this one in place of torch's headers.

#ifndef AOTI_RUNTIME_SLIM_ABI_H_
#define AOTI_RUNTIME_SLIM_ABI_H_

#include <torch/csrc/inductor/aoti_torch/c/macros.h>

#ifndef AOTI_SLIM_VISIBILITY
#define AOTI_SLIM_VISIBILITY "hidden"
#endif

#undef AOTI_TORCH_EXPORT
#define AOTI_TORCH_EXPORT __attribute__((visibility(AOTI_SLIM_VISIBILITY)))

#include <torch/csrc/inductor/aoti_torch/c/shim.h>
#include <torch/csrc/inductor/aoti_torch/generated/c_shim_aten.h>
#include <torch/csrc/inductor/aoti_torch/generated/c_shim_cpu.h>

#endif  // AOTI_RUNTIME_SLIM_ABI_H_
