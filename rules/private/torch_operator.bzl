"""torch_operator: a compiled model as an operator of PyTorch."""

load("@rules_python//python:defs.bzl", "py_library")
load("//rules:providers.bzl", "AotiLibraryInfo")
load(":driver.bzl", "TORCH_TOOLCHAIN", "new_request", "run_driver")
load(":names.bzl", "identifier", "user_label")

SOURCE_SUFFIX = ".source"

# PyTorch's own.
_RESERVED = ["aten", "higher_order", "inductor", "prim", "prims", "quantized", "torch"]

def _python_path(label, name):
    """What Python programs import: `my/package` and `net` are `my.package.net`."""
    return ".".join([part for part in label.package.split("/") if part] + [name])

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

def _operator_source_impl(ctx):
    label = user_label(ctx.label).removesuffix(SOURCE_SUFFIX)
    name = ctx.label.name.removesuffix(SOURCE_SUFFIX)
    if identifier(name) != name:
        fail('{}: the name "{}" can\'t name a Python module; use letters, digits and "_"'.format(label, name))
    library = ctx.attr.library[AotiLibraryInfo]
    out = ctx.actions.declare_file(name + ".py")
    request = new_request(ctx, "operator", {
        "label": label,
        "operator": _checked_operator(ctx, label, name),
        "library": _python_path(ctx.attr.library.label, library.python_module.basename.removesuffix(".so")),
    })
    request.input("--manifest", library.manifest)
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
            providers = [AotiLibraryInfo],
        ),
        "operator": attr.string(doc = "PyTorch's name of the operator."),
    },
    toolchains = [TORCH_TOOLCHAIN],
)

def torch_operator(
        name,
        library,
        operator = "",
        visibility = None,
        tags = [],
        **kwargs):
    """A compiled model or function as an operator of PyTorch, for eager mode and `torch.compile`.

    `NAME` is a `py_library`. A Python program that depends on it, and on a torch of its own, has the
    operator as the module of this name: `from my.package import NAME`, then `NAME(x, w)`. That is also
    `torch.ops.<namespace>.<name>`. Nothing is compiled when the program runs. See docs/torch_operator.md.

    Args:
        name: the Python module's name.
        library: the `aoti_library` (or `aoti_model`), which must keep nothing between calls.
        operator: PyTorch's name of the operator, `namespace::name`. Default: the package, `a/b` as `a_b`, and `name`.
        visibility: visibility of `NAME`.
        tags: tags of every target.
        **kwargs: `testonly`, `target_compatible_with`, `compatible_with`, `restricted_to`, for every target.
    """
    operator_source(
        name = name + SOURCE_SUFFIX,
        library = library,
        operator = operator,
        tags = tags + ["manual"],
        visibility = ["//visibility:private"],
        **kwargs
    )
    py_library(
        name = name,
        srcs = [":" + name + SOURCE_SUFFIX],
        deps = [library, Label("//runtime/operator")],
        tags = tags,
        visibility = visibility,
        **kwargs
    )
