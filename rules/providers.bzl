"""Providers: what the rules of rules_aoti pass to each other, and what other rules may read."""

TorchProgramInfo = provider(
    doc = """An exported PyTorch program: its graph and its weights as separate files, and the manifest that describes both.

Made by `torch_export` and `torch_import`, read by `aoti_library` and `aoti_test`.""",
    fields = {
        "graph": "File: the exported graph without any weight, as JSON. It changes only when the program does.",
        "weights": "File: parameters, buffers and constant tensors, one safetensors file, ready to be mapped.",
        "manifest": "File: inputs, outputs, dims and constants, as JSON; see docs/manifest.md.",
        "locations": "File or None: the source line of each node of the graph, as JSON, for error messages.",
        "package": "File: an ExportedProgram `.pt2` that stock `torch.export.load` reads; built only when asked for.",
        "custom_ops": "list of TorchCustomOpsInfo: the operators that the program calls and that aren't PyTorch's own.",
        "spec": "dict or None: the export request (entry point, input specs, dims); None for an imported program.",
        "eager": "TorchModuleInfo or None: the source that eager PyTorch runs; None where only the program is known.",
        "label": "string: the model's name in messages, such as `//models:encoder`.",
        "name": "string: the model's short name, such as `encoder`.",
    },
)

TorchModuleInfo = provider(
    doc = "The Python side of a model: everything that is importable or readable while its entry point runs.",
    fields = {
        "files": "depset of File: sources and data, laid out as runfiles before the entry point is imported.",
        "imports": "depset of string: import roots, relative to the runfiles root.",
        "weights": "list of File: the weights in the order in which the rule names them.",
        "operators": "list of TorchCustomOpsInfo: operators that must be loaded before.",
        "operator_modules": "list of File: Python files, among `files`, that are imported before the entry point.",
        "triton_modules": "list of File: Python files, among `files`, that define operators with Triton, imported before a program that calls them is read.",
        "triton": "TritonToolchainInfo or None: what `triton_modules` import.",
    },
)

TorchCustomOpsInfo = provider(
    doc = "Operators that models call, made by `torch_custom_ops`, `torch_triton_ops` and `torch_operator`. Files are built only when asked for.",
    fields = {
        "label": "string: the target's label in messages, such as `//ops:fused`.",
        "slim": "CcInfo or None: the static library for models on the slim runtime, which links whole. None for operators on at::Tensor, which only libtorch has.",
        "library": "File or None: the shared library for models on libtorch and for stock PyTorch; None if the target platform has no libtorch.",
        "exec_library": "File or None: the same for the exec platform, where models are exported.",
        "python": "TorchModuleInfo: the Python files that register the fake kernels, or that define the operators with Triton.",
        "programs": "list of struct(module, program): where a model's source runs, PyTorch computes these programs (TorchProgramInfo) in place of the compiled Python module of this name.",
        "data": "depset of File: what programs with the operators read at run time.",
        "sources": "list of File: the C++ sources and headers, or the Python files of operators that are written with Triton.",
    },
)

AotiLibraryInfo = provider(
    doc = "A compiled model: everything that `aoti_library` makes out of one program. Files are built only when asked for.",
    fields = {
        "program": "TorchProgramInfo: the program that was compiled.",
        "manifest": "File: the program's manifest, completed with what code generation decided.",
        "provenance": "File: what the library was made of, as JSON; see docs/supply_chain.md.",
        "header": "File: the generated, typed C++ header.",
        "sources": "list of File: the generated C++ sources, among them folders: one with the kernels for each instruction set.",
        "shared_library": "File: `lib<name>.so` with AOTInductor's C interface, without weights; needs libtorch at load.",
        "package": "File: an AOTInductor package `.pt2` that stock `torch._inductor.aoti_load_package` loads.",
        "python_module": "File: the extension module.",
        "cc_namespace": "string: the C++ namespace of the generated class, such as `models`.",
        "cc_class": "string: the generated class's name, such as `Encoder`.",
        "weights": "File: the weights that the program reads at run time: packed where its runtime wants that.",
        "shim": "string: the implementation of AOTInductor's C ABI that was asked for: `auto`, `slim` or `libtorch`. What `auto` came to is in the manifest.",
        "isa": "string: the lowest instruction set that code was generated for, such as `x86-64-v3`.",
        "isas": "list of string: all instruction sets that code was generated for, the lowest first.",
        "device": "string: what the program runs on unless who loads it says otherwise: `cpu` or `cuda`.",
        "devices": "list of string: all that it can be loaded for; the first is `device`.",
        "cuda_archs": "list of string: the GPU architectures that kernels were compiled for, the lowest first; empty for the CPU.",
    },
)

AotiMethodsInfo = provider(
    doc = "A model of several methods, made by `aoti_methods_library`: one class and one weights file over several compiled programs.",
    fields = {
        "methods": "dict of AotiLibraryInfo by the method's name, in the order of the BUILD file.",
        "header": "File: the generated, typed C++ header.",
        "python_module": "File: the extension module.",
        "cc_namespace": "string: the C++ namespace of the generated class, such as `models`.",
        "cc_class": "string: the generated class's name, such as `Whisper`.",
        "weights": "File: the weights that the methods read at run time.",
    },
)
