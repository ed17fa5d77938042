"""The rules of rules_aoti.

| rule | in | out |
|---|---|---|
| `aoti_model` | a model's Python source | all of the below, for most users |
| `aoti_method` | inputs and dims | one of the methods of an `aoti_model` |
| `aoti_variant` | inputs and dims | one of several programs of an `aoti_model` or `aoti_method` |
| `torch_export` | Python source, weights, sample inputs, dynamic dims | a frozen program |
| `torch_import` | an ExportedProgram `.pt2`, or a folder that `torch_freeze` wrote | the same |
| `torch_freeze` | a program | `bazel run` writes it into the source tree |
| `torch_frozen_test` | a program, and the folder | a test that they are the same |
| `aoti_library` | a program | C++ library and header, `lib*.so`, Python module, AOTInductor package |
| `aoti_methods_library` | several libraries | one class and one weights file for the methods of a model |
| `aoti_info` | a library | `bazel run` prints what it was made of |
| `aoti_test` | a library | a test that compares it with eager PyTorch |
| `torch_custom_ops` | C++ sources of operators, and their fake kernels in Python | what `custom_ops` of a model takes |
| `torch_triton_ops` | Python files with `torch.library.triton_op` | the same, for models on GPUs |
| `triton_kernel` | a function with `@triton.jit` | a C++ class that launches it on a GPU |
| `torch_operator` | a library | an operator of PyTorch, for eager mode and `torch.compile` |
"""

load("//rules/private:aoti_library.bzl", _aoti_library = "aoti_library")
load("//rules/private:aoti_method.bzl", _aoti_method = "aoti_method")
load("//rules/private:aoti_methods_library.bzl", _aoti_methods_library = "aoti_methods_library")
load("//rules/private:aoti_model.bzl", _aoti_model = "aoti_model")
load("//rules/private:aoti_test.bzl", _aoti_test = "aoti_test")
load("//rules/private:aoti_variant.bzl", _aoti_variant = "aoti_variant")
load("//rules/private:frozen.bzl", _torch_freeze = "torch_freeze", _torch_frozen_test = "torch_frozen_test")
load("//rules/private:provenance.bzl", _aoti_info = "aoti_info")
load("//rules/private:torch_custom_ops.bzl", _torch_custom_ops = "torch_custom_ops")
load("//rules/private:torch_export.bzl", _torch_export = "torch_export")
load("//rules/private:torch_import.bzl", _torch_import = "torch_import")
load("//rules/private:torch_operator.bzl", _torch_operator = "torch_operator")
load("//rules/private:torch_triton_ops.bzl", _torch_triton_ops = "torch_triton_ops")
load("//rules/private:triton_kernel.bzl", _triton_kernel = "triton_kernel")

aoti_info = _aoti_info
aoti_library = _aoti_library
aoti_method = _aoti_method
aoti_methods_library = _aoti_methods_library
aoti_model = _aoti_model
aoti_test = _aoti_test
aoti_variant = _aoti_variant
torch_custom_ops = _torch_custom_ops
torch_export = _torch_export
torch_freeze = _torch_freeze
torch_frozen_test = _torch_frozen_test
torch_import = _torch_import
torch_operator = _torch_operator
torch_triton_ops = _torch_triton_ops
triton_kernel = _triton_kernel
