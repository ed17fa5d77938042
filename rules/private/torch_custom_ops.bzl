"""torch_custom_ops: operators in C++ that models call, compiled for every runtime that a model may come to run on."""

load("@rules_cc//cc:find_cc_toolchain.bzl", "use_cc_toolchain")
load("@rules_cc//cc/common:cc_info.bzl", "CcInfo")
load("@rules_python//python:py_info.bzl", "PyInfo")
load("//rules:providers.bzl", "TorchCustomOpsInfo", "TorchModuleInfo")
load(":cc.bzl", "RUNTIME_TOOLCHAIN", "cc_toolchain_of", "compile_sources", "library_on_libtorch", "static_libraries", "static_library")
load(":driver.bzl", "program_files")
load(":module_info.bzl", "module_info")
load(":names.bzl", "program_id", "user_label")

_SOURCES = [".c", ".cc", ".cpp", ".cxx"]
_HEADERS = [".h", ".hh", ".hpp", ".hxx", ".inc"]

# The suffix of the target that compiles the operators.
COMPILED_SUFFIX = ".compiled"

CompiledOpsInfo = provider(
    doc = "Operators, compiled for one platform.",
    fields = {
        "library": "File or None: the shared library on libtorch; None if there is no libtorch for the platform.",
        "slim": "CcInfo or None: the static library on the slim runtime, which links whole; None for operators on at::Tensor.",
        "sources": "list of File: what was compiled.",
    },
)

_SIGNATURE = "runtime/operators/signature.h"

def _copts(ctx, label, first_includes):
    target = '-DAOTI_OPERATORS_TARGET="{}"'.format(user_label(label))
    return ["-std=c++20", target] + [flag for header in first_includes for flag in ["-include", header]] + ctx.attr.copts

def _slim_library(ctx, cc, label, srcs, hdrs, deps):
    """Compiled with slim's names of the C ABI's functions: a binary may have programs on libtorch too."""
    _, objects = compile_sources(
        ctx,
        cc,
        label.name + ".slim",
        srcs,
        _copts(ctx, label, ["runtime/slim/names.h", _SIGNATURE]),
        deps + [ctx.attr._slim_names[CcInfo]],
        public_hdrs = hdrs,
    )
    linking_context = static_library(
        ctx,
        cc,
        label.name,
        [objects],
        deps + [ctx.attr._slim[CcInfo]],
        alwayslink = True,
        linkopts = ctx.attr.linkopts,
    )
    return CcInfo(linking_context = linking_context)

def _torch_library(ctx, cc, label, srcs, hdrs, first_includes, deps, libtorch):
    _, objects = compile_sources(
        ctx,
        cc,
        label.name + ".torch",
        srcs,
        _copts(ctx, label, first_includes),
        deps,
        public_hdrs = hdrs,
    )
    return library_on_libtorch(
        ctx,
        cc,
        # Programs name it as what they need: no two in one process have the same name.
        name = program_id(label),
        outputs = [objects],
        libtorch = libtorch,
        deps = deps,
        exports = ctx.file._exports,
        linkopts = ctx.attr.linkopts,
    )

def _compiled_ops_impl(ctx):
    torch = ctx.toolchains[RUNTIME_TOOLCHAIN].torch_runtime
    label = Label(str(ctx.label).removesuffix(COMPILED_SUFFIX))
    on_tensor = ctx.attr.abi == "libtorch"
    headers = torch.cxx_headers if on_tensor else torch.stable_headers
    if not headers:
        fail("{}: the torch runtime toolchain has no headers of {}; give its `{}`".format(
            user_label(label),
            "libtorch's C++ API" if on_tensor else "torch's stable C++ API",
            "cxx_headers" if on_tensor else "stable_headers",
        ))
    cc = cc_toolchain_of(ctx)
    srcs = [file for file in ctx.files.srcs if "." + file.extension in _SOURCES]
    hdrs = [file for file in ctx.files.srcs if file not in srcs]
    deps = [dep[CcInfo] for dep in ctx.attr.deps] + [headers]
    slim, first_includes = None, []
    if not on_tensor:
        deps.append(ctx.attr._registration[CcInfo])
        slim = _slim_library(ctx, cc, label, srcs, hdrs, deps)
        deps += [ctx.attr._recorded[CcInfo], ctx.attr._torch_classes[CcInfo]]
        first_includes = ["runtime/operators/recorded_names.h", _SIGNATURE]
    library = _torch_library(ctx, cc, label, srcs, hdrs, first_includes, deps, torch.libtorch) if torch.libtorch else None
    return [
        DefaultInfo(files = depset(static_libraries(slim.linking_context, ctx.label) if slim else [])),
        CompiledOpsInfo(library = library, slim = slim, sources = srcs + hdrs),
    ]

compiled_ops = rule(
    implementation = _compiled_ops_impl,
    doc = "Operators, compiled for each runtime. `torch_custom_ops` and `torch_operator` make it.",
    attrs = {
        "abi": attr.string(values = ["stable", "libtorch"]),
        "copts": attr.string_list(),
        "deps": attr.label_list(providers = [CcInfo]),
        "linkopts": attr.string_list(),
        "srcs": attr.label_list(allow_files = _SOURCES + _HEADERS, mandatory = True, allow_empty = False),
        "_exports": attr.label(default = ":custom_ops.lds", allow_single_file = True),
        "_recorded": attr.label(default = "//runtime/operators:recorded", providers = [CcInfo]),
        "_registration": attr.label(default = "//runtime/operators:registration", providers = [CcInfo]),
        "_slim": attr.label(default = "//runtime/slim:stable", providers = [CcInfo]),
        "_slim_names": attr.label(default = "//runtime/slim:names", providers = [CcInfo]),
        "_torch_classes": attr.label(default = "//runtime/operators:torch_classes", providers = [CcInfo]),
    },
    fragments = ["cpp"],
    toolchains = [RUNTIME_TOOLCHAIN] + use_cc_toolchain(),
)

def _python_side(ctx):
    return module_info(
        ctx.files.python,
        [target for target in ctx.attr.python if PyInfo in target],
        operator_modules = [file for file in ctx.files.python if file.extension == "py"],
    )

def _torch_custom_ops_impl(ctx):
    compiled = ctx.attr.compiled[CompiledOpsInfo]
    files = ctx.attr.compiled[DefaultInfo].files
    if compiled.library:
        # For who loads it into stock PyTorch.
        library = ctx.actions.declare_file("lib{}.so".format(ctx.label.name))
        ctx.actions.symlink(output = library, target_file = compiled.library)
        files = depset([library])
    return [
        DefaultInfo(files = files),
        TorchCustomOpsInfo(
            label = user_label(ctx.label),
            slim = compiled.slim,
            library = compiled.library,
            exec_library = ctx.attr.exec_compiled[CompiledOpsInfo].library,
            python = _python_side(ctx),
            programs = [],
            data = depset(),
            sources = compiled.sources,
        ),
    ]

_torch_custom_ops = rule(
    implementation = _torch_custom_ops_impl,
    doc = "Operators in C++ that models call; see the macro.",
    attrs = {
        "compiled": attr.label(providers = [CompiledOpsInfo], mandatory = True),
        "exec_compiled": attr.label(providers = [CompiledOpsInfo], cfg = "exec", mandatory = True),
        "python": attr.label_list(allow_files = [".py"], cfg = "exec"),
    },
    provides = [TorchCustomOpsInfo],
)

def torch_custom_ops(
        name,
        srcs,
        python,
        deps = [],
        abi = "stable",
        copts = [],
        linkopts = [],
        visibility = None,
        tags = [],
        **kwargs):
    """Operators in C++, for `aoti_model(custom_ops = [...])`: on the slim runtime, on libtorch and in stock PyTorch.

    The sources register operators with PyTorch's stable C++ API (`STABLE_TORCH_LIBRARY`,
    `STABLE_TORCH_LIBRARY_IMPL`, `#include <torch/csrc/stable/library.h>`), whose headers they see without
    a dependency. Python beside them says which shapes and dtypes the results have
    (`torch.library.register_fake`). See docs/custom_ops.md. Classes, whose objects models have, are in the same
    sources (`AOTI_CUSTOM_CLASS`, `#include "aoti/custom_class.h"`): docs/custom_classes.md.

    Makes `NAME`, whose file `libNAME.so` stock PyTorch loads with `torch.ops.load_library`.

    Args:
        name: the target's name.
        srcs: C++ sources and headers. They are compiled once for each runtime.
        python: Python files, or py_library targets, that register the operators' fake kernels. The files
            themselves are imported before the model's.
        deps: cc_library targets that the sources use. They can't call PyTorch.
        abi: the C++ API of the sources: `stable`, or `libtorch` for `TORCH_LIBRARY` and `at::Tensor`. Models that
            call operators on `at::Tensor` are linked with libtorch, and refused on the slim runtime.
        copts: flags for the compiler.
        linkopts: flags for the linker.
        visibility: visibility of `NAME`.
        tags: tags of every target.
        **kwargs: `testonly`, `target_compatible_with`, `compatible_with`, `restricted_to`, for every target.
    """
    compiled = name + COMPILED_SUFFIX
    compiled_ops(
        name = compiled,
        srcs = srcs,
        abi = abi,
        copts = copts,
        deps = deps,
        linkopts = linkopts,
        tags = tags + ["manual"],
        visibility = ["//visibility:private"],
        **kwargs
    )
    _torch_custom_ops(
        name = name,
        compiled = ":" + compiled,
        exec_compiled = ":" + compiled,
        python = python,
        tags = tags,
        visibility = visibility,
        **kwargs
    )

def with_operators(module, custom_ops):
    """A model's source together with the operators that it calls, for steps that run the source.

    Args:
        module: TorchModuleInfo.
        custom_ops: list of TorchCustomOpsInfo.

    Returns:
        TorchModuleInfo
    """
    if not custom_ops:
        return module
    own = operators_module(custom_ops, loaded = True)
    return TorchModuleInfo(
        files = depset(transitive = [module.files, own.files]),
        imports = depset(transitive = [module.imports, own.imports]),
        weights = module.weights,
        operators = custom_ops,
        operator_modules = own.operator_modules,
        triton_modules = own.triton_modules,
        triton = own.triton,
    )

def operators_module(custom_ops, loaded = False):
    """The operators' Python alone, for steps that read a program without its source.

    Args:
        custom_ops: list of TorchCustomOpsInfo.
        loaded: whether the step runs the operators too.

    Returns:
        TorchModuleInfo
    """
    programs = [one.program for ops in custom_ops for one in ops.programs] if loaded else []
    triton = [ops.python.triton for ops in custom_ops if ops.python.triton]
    return TorchModuleInfo(
        files = depset(
            [file for program in programs for file in program_files(program)],
            transitive = [ops.python.files for ops in custom_ops],
        ),
        imports = depset(transitive = [ops.python.imports for ops in custom_ops]),
        weights = [],
        operators = custom_ops if loaded else [],
        operator_modules = [file for ops in custom_ops for file in ops.python.operator_modules],
        triton_modules = [file for ops in custom_ops for file in ops.python.triton_modules],
        triton = triton[0] if triton else None,
    )
