"""The rules of rules_aoti.

| rule | in | out |
|---|---|---|
| `aoti_model` | a model's Python source | all of the below, for most users |
| `torch_export` | Python source, weights, sample inputs, dynamic dims | a frozen program |
| `torch_import` | an ExportedProgram `.pt2` | the same |
| `aoti_library` | a program | C++ library and header, `lib*.so`, Python module, AOTInductor package |
| `aoti_test` | a library | a test that compares it with eager PyTorch |
"""

load("//rules/private:aoti_library.bzl", _aoti_library = "aoti_library")
load("//rules/private:aoti_model.bzl", _aoti_model = "aoti_model")
load("//rules/private:aoti_test.bzl", _aoti_test = "aoti_test")
load("//rules/private:torch_export.bzl", _torch_export = "torch_export")
load("//rules/private:torch_import.bzl", _torch_import = "torch_import")

aoti_library = _aoti_library
aoti_model = _aoti_model
aoti_test = _aoti_test
torch_export = _torch_export
torch_import = _torch_import
