"""torch_operator: a compiled model as an operator of PyTorch."""

load("@rules_python//python:defs.bzl", "py_library")
load("@rules_python//python:py_info.bzl", "PyInfo")
load("//rules:providers.bzl", "AotiLibraryInfo", "AotiMethodsInfo", "TorchCustomOpsInfo", "TorchModuleInfo", "TorchProgramInfo")
load(":aoti_library.bzl", "aoti_library")
load(":driver.bzl", "EXPORT", "PACKAGE", "TORCH_TOOLCHAIN", "driver_exec_groups", "new_request", "run_driver")
load(":names.bzl", "PROGRAM_SUFFIX", "SOURCE_SUFFIX", "file_stem", "identifier", "model_label", "user_label")
load(":python_sources.bzl", "python_sources")
load(":torch_custom_ops.bzl", "COMPILED_SUFFIX", "CompiledOpsInfo", "compiled_ops", "operators_module")
load(":torch_export.bzl", "program_outputs", "program_providers")

# The suffixes of the libraries of a training step: the forward and the backward pass.
_TRAINING_SUFFIX = "_training"
_BACKWARD_SUFFIX = "_backward"

# The suffixes of the targets with the Python module, and with the C++ source that registers the operator.
_MODULE_SUFFIX = ".module"
_REGISTRATION_SUFFIX = ".registration"

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

def _libraries(label, library):
    """The programs of the operator: one, or the variants of one."""
    if AotiMethodsInfo not in library:
        info = library[AotiLibraryInfo]
        if "cpu" not in info.devices:
            fail('{}: {} has device = "{}", but operators of PyTorch are compiled for the CPU'.format(label, library.label, info.device))
        return [info]
    methods = library[AotiMethodsInfo].methods
    if [key for key in methods if not key.startswith("forward.")]:
        fail("{}: {} has the methods {}, but an operator is one function. Make an operator of each method's library".format(
            label,
            library.label,
            ", ".join(methods),
        ))
    return methods.values()

def _cc_class(info):
    """The C++ class of a program, and its header as sources include it."""
    package = info.program.label.partition("//")[2].partition(":")[0]
    return {
        "header": "/".join([part for part in [package, info.header.basename] if part]),
        "name": "::{}::{}".format(info.cc_namespace, info.cc_class),
    }

def _operator_source_impl(ctx):
    label = user_label(ctx.label).removesuffix(SOURCE_SUFFIX)
    name = file_stem(ctx.label)
    if identifier(name) != name:
        fail('{}: the name "{}" can\'t name a Python module; use letters, digits and "_"'.format(label, name))
    libraries = _libraries(label, ctx.attr.library)
    training = zip(ctx.attr.training, ctx.attr.backward)
    out = ctx.actions.declare_file(name + ".py")
    registration = ctx.actions.declare_file(name + ".registration.cc")
    request = new_request(ctx, "operator", {
        "label": label,
        "classes": [_cc_class(one) for one in libraries],
        "operator": _checked_operator(ctx, label, name),
        "library": _python_path(ctx.attr.library),
        "training": [[_python_path(part) for part in step] for step in training],
    })
    for library in libraries:
        request.input("--manifest", library.manifest)
    for forward, backward in training:
        request.input("--training", forward[AotiLibraryInfo].manifest)
        request.input("--backward", backward[AotiLibraryInfo].manifest)
    request.output("--out", out)
    request.output("--out_cc", registration)
    run_driver(
        ctx,
        mnemonic = "AotiOperator",
        request = request,
        progress_message = "Generating the operator {}".format(label),
    )
    return [DefaultInfo(files = depset([out])), OutputGroupInfo(cc = depset([registration]))]

operator_source = rule(
    implementation = _operator_source_impl,
    doc = "The Python module that registers an operator. `torch_operator` makes it.",
    attrs = {
        "library": attr.label(
            doc = "The `aoti_library` (or `aoti_model`).",
            mandatory = True,
            providers = [[AotiLibraryInfo], [AotiMethodsInfo]],
        ),
        "training": attr.label_list(
            doc = "For each variant, the `aoti_library` of the forward pass of training.",
            providers = [AotiLibraryInfo],
        ),
        "backward": attr.label_list(
            doc = "For each variant, the `aoti_library` of its backward pass.",
            providers = [AotiLibraryInfo],
        ),
        "operator": attr.string(doc = "PyTorch's name of the operator."),
    },
    toolchains = [TORCH_TOOLCHAIN],
)

_TrainingInfo = provider(
    doc = "The forward pass of a training step, which is made with its backward pass.",
    fields = {name: "File" for name in ["graph", "weights", "manifest", "locations"]} | {
        "custom_ops": "list of TorchCustomOpsInfo: the operators that both programs call.",
    },
)

def _backward_program_impl(ctx):
    name = file_stem(ctx.label).removesuffix(_BACKWARD_SUFFIX)
    label = model_label(ctx.label).removesuffix(_BACKWARD_SUFFIX)
    variants = _libraries(label, ctx.attr.library)
    if AotiLibraryInfo not in ctx.attr.library:
        fail("{}: differentiable = True, but {} has {} variants, which are known in its own BUILD file alone. {}".format(
            label,
            user_label(ctx.attr.library.label),
            len(variants),
            "Write torch_operator in //{}, below the model".format(ctx.attr.library.label.package),
        ))
    program = ctx.attr.library[AotiLibraryInfo].program
    backward = program_outputs(ctx)
    training = _TrainingInfo(custom_ops = program.custom_ops, **{
        part: ctx.actions.declare_file("{}.step.{}".format(name, part))
        for part in ["graph", "weights", "manifest", "locations"]
    })
    suffixes = [_TRAINING_SUFFIX, _BACKWARD_SUFFIX]
    request = new_request(ctx, "differentiate", {
        "label": label,
        "labels": [label + suffix for suffix in suffixes],
        "names": [name + suffix for suffix in suffixes],
    })
    request.input("--graph", program.graph)
    request.input("--weights", program.weights)
    request.input("--manifest", program.manifest)
    if program.custom_ops:
        request.module(operators_module(program.custom_ops, loaded = True))
    for flag, outputs in [("--out_", backward), ("--out_training_", training)]:
        request.output(flag + "graph", outputs.graph)
        request.output(flag + "weights", outputs.weights)
        request.output(flag + "manifest", outputs.manifest)
        request.output(flag + "locations", outputs.locations)
    run_driver(
        ctx,
        mnemonic = "TorchDifferentiate",
        request = request,
        progress_message = "Differentiating {}".format(program.label),
    )
    return program_providers(ctx, backward, spec = None, eager = None, custom_ops = program.custom_ops) + [training]

backward_program = rule(
    implementation = _backward_program_impl,
    doc = "The backward pass of a library's program, as a program. `torch_operator` makes it.",
    attrs = {
        "library": attr.label(
            doc = "The `aoti_library` (or `aoti_model`).",
            mandatory = True,
            # Models of several programs are refused in words.
            providers = [[AotiLibraryInfo], [AotiMethodsInfo]],
        ),
    },
    provides = [TorchProgramInfo],
    exec_groups = driver_exec_groups(EXPORT, PACKAGE),
    toolchains = [TORCH_TOOLCHAIN],
)

def _training_program_impl(ctx):
    outputs = program_outputs(ctx)
    made = ctx.attr.backward[_TrainingInfo]
    for part in ["graph", "weights", "manifest", "locations"]:
        ctx.actions.symlink(output = getattr(outputs, part), target_file = getattr(made, part))
    return program_providers(ctx, outputs, spec = None, eager = None, custom_ops = made.custom_ops)

training_program = rule(
    implementation = _training_program_impl,
    doc = "The forward pass of a training step, as a program. `torch_operator` makes it.",
    attrs = {
        "backward": attr.label(
            doc = "The backward pass.",
            mandatory = True,
            providers = [_TrainingInfo],
        ),
    },
    provides = [TorchProgramInfo],
    exec_groups = driver_exec_groups(EXPORT, PACKAGE),
    toolchains = [TORCH_TOOLCHAIN],
)

def _variants(library):
    """The libraries of a model's variants and what their names end in; a model without has one."""
    label = native.package_relative_label(library)
    rule = None
    if label.package == native.package_name() and label.repo_name == native.package_relative_label(":x").repo_name:
        rule = native.existing_rule(label.name)
    libraries = (rule or {}).get("libraries")
    if not libraries:
        return [("", library)]
    by_name = {key: target for target, key in libraries.items()}
    return [("_" + key.partition(".")[2], by_name[key]) for key in rule["order"]]

def _training_step(name, library, hidden):
    """The libraries of a training step: the forward and the backward pass."""
    forward, backward = name + _TRAINING_SUFFIX, name + _BACKWARD_SUFFIX
    backward_program(name = backward + PROGRAM_SUFFIX, library = library, **hidden)
    training_program(name = forward + PROGRAM_SUFFIX, backward = ":" + backward + PROGRAM_SUFFIX, **hidden)
    for own in [forward, backward]:
        aoti_library(name = own, program = ":" + own + PROGRAM_SUFFIX, **hidden)
    return ":" + forward, ":" + backward

def _torch_operator_impl(ctx):
    module = ctx.attr.module
    compiled = ctx.attr.compiled[CompiledOpsInfo]
    runtime = ctx.attr._runtime[PyInfo]
    libraries = [one[AotiLibraryInfo] for one in ctx.attr.libraries if AotiLibraryInfo in one]
    return [
        module[DefaultInfo],
        module[PyInfo],
        TorchCustomOpsInfo(
            label = user_label(ctx.label),
            slim = compiled.slim,
            library = compiled.library,
            # The Python module registers it there, too.
            exec_library = None,
            python = TorchModuleInfo(
                files = depset(ctx.files.source, transitive = python_sources(runtime)),
                imports = runtime.imports,
                weights = [],
                operators = [],
                operator_modules = ctx.files.source,
                triton_modules = [],
                triton = None,
            ),
            programs = [struct(module = _python_path(ctx.attr.library), program = one.program) for one in libraries],
            data = depset(transitive = [one[DefaultInfo].default_runfiles.files for one in ctx.attr.libraries]),
            sources = compiled.sources,
        ),
    ]

_torch_operator = rule(
    implementation = _torch_operator_impl,
    doc = "A compiled model as an operator of PyTorch; see the macro.",
    attrs = {
        "compiled": attr.label(providers = [CompiledOpsInfo], mandatory = True),
        "libraries": attr.label_list(mandatory = True),
        "library": attr.label(mandatory = True),
        "module": attr.label(providers = [PyInfo], mandatory = True),
        "source": attr.label(mandatory = True),
        "_runtime": attr.label(default = "//runtime:operator", providers = [PyInfo], cfg = "exec"),
    },
    provides = [PyInfo, TorchCustomOpsInfo],
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

    `NAME` is a Python library. A Python program that depends on it, and on a torch of its own, has the
    operator as the module of this name: `from my.package import NAME`, then `NAME(x, w)`. That is also
    `torch.ops.<namespace>.<name>`. Nothing is compiled when the program runs. An `aoti_model` whose source
    calls the operator has it in `custom_ops`. See docs/torch_operator.md.

    Args:
        name: the Python module's name.
        library: the `aoti_library` (or `aoti_model`), which must keep nothing between calls. It may have variants.
        operator: PyTorch's name of the operator, `namespace::name`. Default: the package, `a/b` as `a_b`, and `name`.
        differentiable: whether `backward()` goes through it. Two programs are then compiled too: `NAME_training`, the forward
            pass that also returns what the backward pass needs, and `NAME_backward`. The gradients are those of all
            floating-point inputs; parameters of the model are constants.
        visibility: visibility of `NAME`.
        tags: tags of every target.
        **kwargs: `testonly`, `target_compatible_with`, `compatible_with`, `restricted_to`, for every target.
    """
    hidden = dict(tags = tags + ["manual"], visibility = ["//visibility:private"], **kwargs)
    variants = _variants(library)
    steps = []
    if differentiable:
        steps = [_training_step(name + suffix, own, hidden) for suffix, own in variants]
    training = [forward for forward, _ in steps]
    backward = [backward for _, backward in steps]
    operator_source(
        name = name + SOURCE_SUFFIX,
        library = library,
        training = training,
        backward = backward,
        operator = operator,
        **hidden
    )
    native.filegroup(
        name = name + _REGISTRATION_SUFFIX,
        srcs = [":" + name + SOURCE_SUFFIX],
        output_group = "cc",
        **hidden
    )
    compiled_ops(
        name = name + COMPILED_SUFFIX,
        abi = "stable",
        srcs = [":" + name + _REGISTRATION_SUFFIX],
        deps = [own for _, own in variants] + [Label("//runtime/operators:compiled")],
        **hidden
    )
    py_library(
        name = name + _MODULE_SUFFIX,
        srcs = [":" + name + SOURCE_SUFFIX],
        deps = [library, Label("//runtime:operator")] + training + backward,
        **hidden
    )
    _torch_operator(
        name = name,
        compiled = ":" + name + COMPILED_SUFFIX,
        libraries = [own for _, own in variants],
        library = library,
        module = ":" + name + _MODULE_SUFFIX,
        source = ":" + name + SOURCE_SUFFIX,
        tags = tags,
        visibility = visibility,
        **kwargs
    )
