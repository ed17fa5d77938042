"""torch_import: takes a program that is frozen already in place of a model's source."""

load("//rules:providers.bzl", "TorchProgramInfo")
load(":driver.bzl", "EXPORT", "PACKAGE", "TORCH_TOOLCHAIN", "driver_exec_groups", "new_request", "run_driver")
load(":frozen.bzl", "frozen_files")
load(":names.bzl", "model_label", "model_name", "user_label")
load(":torch_custom_ops.bzl", "operators_module")
load(":torch_export.bzl", "CUSTOM_OPS", "PRECISION", "custom_ops_of", "precision_of", "program_outputs", "program_providers")

def _import_package(ctx, label, outputs):
    """From a `.pt2` that stock PyTorch wrote."""
    if ctx.file.weights:
        fail("{}: weights = \"{}\": a `.pt2` brings its own weights; to replace them, give `weights` to aoti_library".format(label, user_label(ctx.attr.weights.label)))
    request = new_request(ctx, "import", {
        "label": label,
        "name": model_name(ctx.label),
        "inputs": ctx.attr.inputs,
        "dynamic_dims": ctx.attr.dynamic_dims,
    } | precision_of(ctx))
    request.input("--program", ctx.file.program)
    if ctx.attr.custom_ops:
        request.module(operators_module(custom_ops_of(ctx), loaded = True))
    request.output("--out_graph", outputs.graph)
    request.output("--out_weights", outputs.weights)
    request.output("--out_manifest", outputs.manifest)
    request.output("--out_locations", outputs.locations)
    run_driver(
        ctx,
        mnemonic = "TorchImport",
        request = request,
        progress_message = "Importing {}".format(label),
    )

def _import_frozen(ctx, label, outputs):
    """From the folder that a `.freeze` target wrote."""
    if ctx.attr.inputs or ctx.attr.dynamic_dims:
        fail("{}: `inputs` and `dynamic_dims` are in the frozen manifest already; leave them out, or freeze anew with others".format(label))
    if precision_of(ctx):
        fail("{}: precision = \"{}\": a frozen program has the precision that it was frozen with; leave it out here, and give it to the target that is frozen".format(label, ctx.attr.precision))
    frozen = frozen_files(label, ctx.files.frozen)
    if ctx.file.weights and frozen.weights:
        fail("{}: weights = \"{}\": the frozen folder has weights already ({}); remove one of the two".format(
            label,
            user_label(ctx.attr.weights.label),
            frozen.weights.short_path,
        ))

    request = new_request(ctx, "thaw", {"label": label, "name": model_name(ctx.label)})
    request.input("--graph", frozen.graph)
    request.input("--manifest", frozen.manifest)
    request.output("--out_graph", outputs.graph)
    request.output("--out_manifest", outputs.manifest)
    request.output("--out_locations", outputs.locations)
    run_driver(
        ctx,
        mnemonic = "TorchImport",
        request = request,
        progress_message = "Importing {}".format(label),
    )

    # Of their own: whoever only needs the graph never waits for the weights.
    weights = ctx.file.weights or frozen.weights
    given = user_label(ctx.attr.weights.label) if ctx.file.weights else ""
    request = new_request(ctx, "thaw_weights", {"label": label, "given": given or "in the frozen folder"})
    request.input("--info", frozen.weights_info)
    if weights:
        request.input("--weights", weights)
    request.output("--out", outputs.weights)
    run_driver(
        ctx,
        mnemonic = "TorchImportWeights",
        request = request,
        progress_message = "Checking the weights of {}".format(label),
    )

def _torch_import_impl(ctx):
    label = model_label(ctx.label)
    if bool(ctx.file.program) == bool(ctx.files.frozen):
        fail("{}: give either `program` (a `.pt2` that torch.export.save wrote) or `frozen` (the files that a `.freeze` target wrote, as a glob)".format(label))
    outputs = program_outputs(ctx)
    if ctx.file.program:
        _import_package(ctx, label, outputs)
    else:
        _import_frozen(ctx, label, outputs)
    return program_providers(ctx, outputs, spec = None, eager = None, custom_ops = custom_ops_of(ctx))

torch_import = rule(
    implementation = _torch_import_impl,
    doc = """Takes a program that is frozen already: it needs no Python source. Gives what `torch_export` gives.

The program is either a `.pt2` that `torch.export.save` wrote (`program`), or a folder in the source
tree that `bazel run :encoder.freeze` wrote (`frozen`); see docs/frozen.md.

A `.pt2` has the names of inputs and the ranges of dims; it does not keep the names of dims: they
are called `s0`, `s1`, ... unless `inputs` and `dynamic_dims` name them. A frozen folder has all.""",
    attrs = {
        "custom_ops": CUSTOM_OPS,
        "program": attr.label(
            doc = "The `.pt2` file, checked in or fetched.",
            allow_single_file = [".pt2"],
        ),
        "frozen": attr.label_list(
            doc = 'In place of `program`: the files of a frozen folder, such as `glob(["encoder.frozen/*"])`.',
            allow_files = True,
        ),
        "weights": attr.label(
            doc = """With `frozen`: the weights that the program was frozen with, if they are not in the folder. A
file, or a target that fetches or makes it; its digest must be the frozen one.""",
            allow_single_file = True,
        ),
        "inputs": attr.string_dict(
            doc = 'With `program`: names for the dims, by the program\'s inputs: `{"tokens": "int64[batch, seq]"}`.',
        ),
        "dynamic_dims": attr.string_dict(
            doc = "With `program`: the dims that `inputs` names, with their ranges; see `torch_export`.",
        ),
        "precision": PRECISION,
    },
    provides = [TorchProgramInfo],
    exec_groups = driver_exec_groups(EXPORT, PACKAGE),
    toolchains = [TORCH_TOOLCHAIN],
)
