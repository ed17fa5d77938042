"""torch_export: runs `torch.export` and freezes the program."""

load("@rules_python//python:py_info.bzl", "PyInfo")
load("//rules:providers.bzl", "TorchCustomOpsInfo", "TorchProgramInfo")
load(":driver.bzl", "EXPORT", "PACKAGE", "TORCH_TOOLCHAIN", "driver_exec_groups", "new_request", "run_driver")
load(":module_info.bzl", "module_info")
load(":names.bzl", "file_stem", "model_label", "model_name")
load(":provenance.bzl", "write_provenance")
load(":torch_custom_ops.bzl", "with_operators")

def _module_info(ctx):
    return module_info(ctx.files.weights, [ctx.attr.module], weights = ctx.files.weights)

def program_outputs(ctx):
    """Declares a program's files.

    Args:
        ctx: the rule's context.

    Returns:
        A struct of File: graph, weights, manifest, package, locations, provenance.
    """
    name = file_stem(ctx.label)
    return struct(
        graph = ctx.actions.declare_file(name + ".graph.json"),
        weights = ctx.actions.declare_file(name + ".weights.safetensors"),
        manifest = ctx.actions.declare_file(name + ".program.json"),
        package = ctx.actions.declare_file(name + ".export.pt2"),
        locations = ctx.actions.declare_file(name + ".locations.json"),
        provenance = ctx.actions.declare_file(name + ".program.provenance.json"),
    )

def package_program(ctx, graph, weights, manifest, provenance, package):
    """Declares the action that writes the ExportedProgram for stock PyTorch.

    Args:
        ctx: the rule's context.
        graph: File.
        weights: File.
        manifest: File.
        provenance: File.
        package: File to write.
    """
    request = new_request(ctx, "export_package")
    request.input("--graph", graph)
    request.input("--weights", weights)
    request.input("--manifest", manifest)
    request.input("--provenance", provenance)
    request.output("--out", package)
    run_driver(
        ctx,
        mnemonic = "TorchPackage",
        request = request,
        progress_message = "Packaging the ExportedProgram of {}".format(model_label(ctx.label)),
    )

def custom_ops_of(ctx):
    """The operators that the attribute names.

    Args:
        ctx: the rule's context.

    Returns:
        list of TorchCustomOpsInfo
    """
    return [target[TorchCustomOpsInfo] for target in ctx.attr.custom_ops]

def program_providers(ctx, outputs, spec, eager, custom_ops):
    """The providers of a program whose files an action makes.

    Args:
        ctx: the rule's context.
        outputs: what `program_outputs` declared.
        spec: the export request, or None.
        eager: TorchModuleInfo or None.
        custom_ops: list of TorchCustomOpsInfo.

    Returns:
        A list of providers.
    """
    label = model_label(ctx.label)
    write_provenance(ctx, outputs.manifest, outputs.provenance, weights = outputs.weights)
    package_program(ctx, outputs.graph, outputs.weights, outputs.manifest, outputs.provenance, outputs.package)
    return [
        DefaultInfo(files = depset([outputs.graph, outputs.weights, outputs.manifest])),
        OutputGroupInfo(
            export = depset([outputs.package]),
            manifest = depset([outputs.manifest]),
            provenance = depset([outputs.provenance]),
            weights = depset([outputs.weights]),
        ),
        TorchProgramInfo(
            graph = outputs.graph,
            weights = outputs.weights,
            manifest = outputs.manifest,
            locations = outputs.locations,
            package = outputs.package,
            custom_ops = custom_ops,
            spec = spec,
            eager = eager,
            label = label,
            name = model_name(ctx.label),
        ),
    ]

CUSTOM_OPS = attr.label_list(
    doc = "`torch_custom_ops` and `torch_triton_ops` targets with the operators that the model calls and that aren't PyTorch's own; see docs/custom_ops.md and docs/triton_op.md.",
    providers = [TorchCustomOpsInfo],
)

PRECISION = attr.string(
    doc = """`"bfloat16"`: the matrices of weights are stored as bfloat16, and products with them take bfloat16 and
add up in float32. `"int8"`: the weights of linear layers and tables are stored as int8, and products take int8 and
add up in int32. See docs/precision.md. Default: as the model has them.""",
    default = "float32",
    values = ["float32", "bfloat16", "int8"],
)

def precision_of(ctx):
    """The part of a request that says the precision.

    Args:
        ctx: the rule's context.

    Returns:
        A dict; empty for the default.
    """
    return {} if ctx.attr.precision == "float32" else {"precision": ctx.attr.precision}

def _torch_export_impl(ctx):
    label = model_label(ctx.label)
    if not ctx.attr.inputs and not ctx.attr.sample_inputs:
        fail('{}: give `inputs` (such as {{"tokens": "int64[batch, seq]"}}) or `sample_inputs` (a callable)'.format(label))
    spec = {
        "label": label,
        "name": model_name(ctx.label),
        "entry_point": ctx.attr.entry_point,
        "method": ctx.attr.method or None,
        "inputs": ctx.attr.inputs,
        "sample_inputs": ctx.attr.sample_inputs or None,
        "dynamic_dims": ctx.attr.dynamic_dims,
        "strict": ctx.attr.strict,
        "decompositions": ctx.attr.decompositions,
    } | precision_of(ctx)
    module = with_operators(_module_info(ctx), custom_ops_of(ctx))
    outputs = program_outputs(ctx)

    request = new_request(ctx, "export", spec)
    request.module(module)
    request.output("--out_graph", outputs.graph)
    request.output("--out_weights", outputs.weights)
    request.output("--out_manifest", outputs.manifest)
    request.output("--out_locations", outputs.locations)
    run_driver(
        ctx,
        mnemonic = "TorchExport",
        request = request,
        progress_message = "Exporting {}".format(label),
    )
    return program_providers(ctx, outputs, spec, module, custom_ops_of(ctx))

torch_export = rule(
    implementation = _torch_export_impl,
    doc = """Runs `torch.export` on a model's source and freezes the result.

The program comes in three files: the graph (without weights), the weights (safetensors) and the
manifest. What later steps cost depends on which of them changed: new weights regenerate and
recompile nothing.

The output group `export` holds the program as an ExportedProgram `.pt2` for stock `torch.export.load`.""",
    attrs = {
        "module": attr.label(
            doc = "The model's source: any target with PyInfo. It runs in an action, so it is built for the exec platform.",
            mandatory = True,
            providers = [PyInfo],
            cfg = "exec",
        ),
        "custom_ops": CUSTOM_OPS,
        "entry_point": attr.string(
            doc = """`package.module:callable`, returning an `nn.Module`.

A callable with parameters gets the paths of `weights`, in order. One without parameters returns
the bare module, and the weights (safetensors, or a state dict saved by torch) are loaded by name,
strictly.""",
            mandatory = True,
        ),
        "method": attr.string(
            doc = """The method of the module to export, in place of `forward`: `encode`; or a submodule, `encoder`, whose
`forward` it then is; or a submodule's method, `encoder.step`.

`inputs` are then the arguments of that method. The program has only those of the module's tensors
that the method reads, by their names in the module. See docs/methods.md.""",
        ),
        "weights": attr.label_list(
            doc = "Weight files, handed to the entry point as paths or loaded by name.",
            allow_files = True,
        ),
        "inputs": attr.string_dict(
            doc = """Sample inputs by the argument names of `forward()`, or of `method`, such as `"int64[batch, seq] in 0..30521"`.

Extents are integers, names of `dynamic_dims`, or expressions of one (`2*half`, `half + 1`).

Without brackets it is a Python number that varies, `"float in 0.1..2"` or `"int in 1..50"`. A Python literal, such as `"'max'"` or `"None"`, is an argument that does not vary.

Every call is checked for a range of integers and of numbers; one of a tensor of floats only says how samples are drawn.""",
        ),
        "sample_inputs": attr.string(
            doc = "`package.module:callable` that returns the sample inputs, for what `inputs` can't say (pytrees, values). See docs/inputs.md.",
        ),
        "dynamic_dims": attr.string_dict(
            doc = """The dims that vary between calls: `{"batch": "1..64"}`, in terms of another one: `{"seq": "2*half"}`, or to be found by the export: `{"seq": "auto"}`.""",
        ),
        "strict": attr.bool(
            doc = "`torch.export`'s `strict`: trace with TorchDynamo (True) or by running the Python code (False, torch's default).",
            default = False,
        ),
        "decompositions": attr.string_list(
            doc = """Which operators are replaced by simpler ones: the sets `core_aten`, `inductor` and `none`, and single operators,
`aten.gelu` (replaced) and `-aten.silu.default` (kept although a set has it). Default: none. See docs/operators.md.""",
        ),
        "precision": PRECISION,
    },
    provides = [TorchProgramInfo],
    exec_groups = driver_exec_groups(EXPORT, PACKAGE),
    toolchains = [TORCH_TOOLCHAIN],
)
