"""torch_operator: a compiled model as an operator of PyTorch."""

load("@rules_python//python:defs.bzl", "py_library")
load("//rules:providers.bzl", "AotiLibraryInfo", "AotiMethodsInfo", "TorchProgramInfo")
load(":aoti_library.bzl", "aoti_library")
load(":driver.bzl", "EXPORT", "PACKAGE", "TORCH_TOOLCHAIN", "driver_exec_groups", "new_request", "run_driver")
load(":names.bzl", "PROGRAM_SUFFIX", "SOURCE_SUFFIX", "file_stem", "identifier", "model_label", "model_name", "user_label")
load(":torch_export.bzl", "program_outputs", "program_providers")

BACKWARD_SUFFIX = "_backward"

# PyTorch's own.
_RESERVED = ["aten", "higher_order", "inductor", "prim", "prims", "quantized", "torch"]

def _python_path(library):
    """What Python programs import: `net` in `my/package` is `my.package.net`."""
    info = library[AotiMethodsInfo] if AotiMethodsInfo in library else library[AotiLibraryInfo]
    name = info.python_module.basename.removesuffix(".so")
    return ".".join([part for part in library.label.package.split("/") if part] + [name])

def _default_operator(label, name):
    return "{}::{}".format(identifier(label.package.replace("/", "_")) if label.package else "aoti_models", name)

def _checked_operator(ctx, label, name):
    operator = ctx.attr.operator or _default_operator(ctx.label, name)
    parts = operator.split("::")
    if len(parts) != 2 or [part for part in parts if not part or identifier(part) != part]:
        fail('{}: operator = "{}" must be "namespace::name", of letters, digits and "_"'.format(label, operator))
    if parts[0] in _RESERVED:
        fail('{}: operator = "{}": the namespace "{}" is PyTorch\'s own; choose another one'.format(label, operator, parts[0]))
    return operator

def _libraries(label, library, backward):
    """The programs of the operator: one, or the variants of one."""
    if AotiMethodsInfo not in library:
        return [library[AotiLibraryInfo]]
    methods = library[AotiMethodsInfo].methods
    if [key for key in methods if not key.startswith("forward.")]:
        fail("{}: {} has the methods {}, but an operator is one function. Make an operator of each method's library".format(
            label,
            library.label,
            ", ".join(methods),
        ))
    if backward:
        fail("{}: differentiable = True together with {}, which has variants: make an operator of one program".format(label, library.label))
    return methods.values()

def _operator_source_impl(ctx):
    label = user_label(ctx.label).removesuffix(SOURCE_SUFFIX)
    name = file_stem(ctx.label)
    if identifier(name) != name:
        fail('{}: the name "{}" can\'t name a Python module; use letters, digits and "_"'.format(label, name))
    libraries = _libraries(label, ctx.attr.library, ctx.attr.backward)
    out = ctx.actions.declare_file(name + ".py")
    request = new_request(ctx, "operator", {
        "label": label,
        "operator": _checked_operator(ctx, label, name),
        "library": _python_path(ctx.attr.library),
        "backward": _python_path(ctx.attr.backward) if ctx.attr.backward else None,
    })
    for library in libraries:
        request.input("--manifest", library.manifest)
    if ctx.attr.backward:
        request.input("--backward", ctx.attr.backward[AotiLibraryInfo].manifest)
    request.output("--out", out)
    run_driver(
        ctx,
        mnemonic = "AotiOperator",
        request = request,
        progress_message = "Generating the operator {}".format(label),
    )
    return [DefaultInfo(files = depset([out]))]

operator_source = rule(
    implementation = _operator_source_impl,
    doc = "The Python module that registers an operator. `torch_operator` makes it.",
    attrs = {
        "library": attr.label(
            doc = "The `aoti_library` (or `aoti_model`).",
            mandatory = True,
            providers = [[AotiLibraryInfo], [AotiMethodsInfo]],
        ),
        "backward": attr.label(
            doc = "The `aoti_library` of its backward pass.",
            providers = [AotiLibraryInfo],
        ),
        "operator": attr.string(doc = "PyTorch's name of the operator."),
    },
    toolchains = [TORCH_TOOLCHAIN],
)

def _backward_program_impl(ctx):
    label = model_label(ctx.label)
    program = ctx.attr.library[AotiLibraryInfo].program
    outputs = program_outputs(ctx)
    request = new_request(ctx, "differentiate", {"label": label, "name": model_name(ctx.label)})
    request.input("--graph", program.graph)
    request.input("--weights", program.weights)
    request.input("--manifest", program.manifest)
    request.output("--out_graph", outputs.graph)
    request.output("--out_weights", outputs.weights)
    request.output("--out_manifest", outputs.manifest)
    request.output("--out_locations", outputs.locations)
    run_driver(
        ctx,
        mnemonic = "TorchDifferentiate",
        request = request,
        progress_message = "Differentiating {}".format(program.label),
    )
    return program_providers(ctx, outputs, spec = None, eager = None, custom_ops = ctx.attr.library[AotiLibraryInfo].program.custom_ops)

backward_program = rule(
    implementation = _backward_program_impl,
    doc = "The backward pass of a library's program, as a program. `torch_operator` makes it.",
    attrs = {
        "library": attr.label(
            doc = "The `aoti_library` (or `aoti_model`).",
            mandatory = True,
            providers = [AotiLibraryInfo],
        ),
    },
    provides = [TorchProgramInfo],
    exec_groups = driver_exec_groups(EXPORT, PACKAGE),
    toolchains = [TORCH_TOOLCHAIN],
)

def torch_operator(
        name,
        library,
        operator = "",
        differentiable = False,
        visibility = None,
        tags = [],
        **kwargs):
    """A compiled model or function as an operator of PyTorch, for eager mode and `torch.compile`.

    `NAME` is a `py_library`. A Python program that depends on it, and on a torch of its own, has the
    operator as the module of this name: `from my.package import NAME`, then `NAME(x, w)`. That is also
    `torch.ops.<namespace>.<name>`. Nothing is compiled when the program runs. See docs/torch_operator.md.

    Args:
        name: the Python module's name.
        library: the `aoti_library` (or `aoti_model`), which must keep nothing between calls. It may have variants.
        operator: PyTorch's name of the operator, `namespace::name`. Default: the package, `a/b` as `a_b`, and `name`.
        differentiable: whether `backward()` goes through it. Its backward pass is then compiled too, as the `aoti_library`
            `NAME_backward`. It gives the gradients of all floating-point inputs; parameters of the model are constants.
        visibility: visibility of `NAME`.
        tags: tags of every target.
        **kwargs: `testonly`, `target_compatible_with`, `compatible_with`, `restricted_to`, for every target.
    """
    hidden = dict(tags = tags + ["manual"], visibility = ["//visibility:private"], **kwargs)
    backward = None
    if differentiable:
        backward = ":" + name + BACKWARD_SUFFIX
        backward_program(
            name = name + BACKWARD_SUFFIX + PROGRAM_SUFFIX,
            library = library,
            **hidden
        )
        aoti_library(
            name = name + BACKWARD_SUFFIX,
            program = ":" + name + BACKWARD_SUFFIX + PROGRAM_SUFFIX,
            **hidden
        )
    operator_source(
        name = name + SOURCE_SUFFIX,
        library = library,
        backward = backward,
        operator = operator,
        **hidden
    )
    py_library(
        name = name,
        srcs = [":" + name + SOURCE_SUFFIX],
        deps = [library, Label("//runtime:operator")] + ([backward] if backward else []),
        tags = tags,
        visibility = visibility,
        **kwargs
    )
