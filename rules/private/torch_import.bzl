"""torch_import: takes an ExportedProgram file in place of a model's source."""

load("//rules:providers.bzl", "TorchProgramInfo")
load(":driver.bzl", "TORCH_TOOLCHAIN", "new_request", "run_driver")
load(":names.bzl", "model_label", "model_name")
load(":torch_export.bzl", "program_outputs", "program_providers")

def _torch_import_impl(ctx):
    label = model_label(ctx.label)
    outputs = program_outputs(ctx)
    request = new_request(ctx, "import", {
        "label": label,
        "name": model_name(ctx.label),
        "inputs": ctx.attr.inputs,
        "dynamic_dims": ctx.attr.dynamic_dims,
    })
    request.args.add(ctx.file.program, format = "--program=%s")
    request.args.add(outputs.graph, format = "--out_graph=%s")
    request.args.add(outputs.weights, format = "--out_weights=%s")
    request.args.add(outputs.manifest, format = "--out_manifest=%s")
    request.args.add(outputs.locations, format = "--out_locations=%s")
    run_driver(
        ctx,
        mnemonic = "TorchImport",
        request = request,
        inputs = depset([ctx.file.program]),
        outputs = [outputs.graph, outputs.weights, outputs.manifest, outputs.locations],
        progress_message = "Importing {}".format(label),
    )
    return program_providers(ctx, outputs, spec = None, eager = None)

torch_import = rule(
    implementation = _torch_import_impl,
    doc = """Takes a program that `torch.export.save` wrote: a frozen model needs no Python source.

Gives what `torch_export` gives. Names of inputs and the ranges of dims come from the file; it does
not keep the names of dims: they are called `s0`, `s1`, ... unless `inputs` and `dynamic_dims` name
them.""",
    attrs = {
        "program": attr.label(
            doc = "The `.pt2` file, checked in or fetched.",
            mandatory = True,
            allow_single_file = [".pt2"],
        ),
        "inputs": attr.string_dict(
            doc = 'Names for the dims, by the program\'s inputs: `{"tokens": "int64[batch, seq]"}`.',
        ),
        "dynamic_dims": attr.string_dict(
            doc = "The dims that `inputs` names, with their ranges; see `torch_export`.",
        ),
    },
    provides = [TorchProgramInfo],
    toolchains = [TORCH_TOOLCHAIN],
)
