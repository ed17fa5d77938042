"""Programs that lie frozen in the source tree: writing them, and testing that they are still right."""

load("//rules:providers.bzl", "TorchProgramInfo")
load(":driver.bzl", "TORCH_TOOLCHAIN")
load(":names.bzl", "model_label", "model_name", "user_label")
load(":tool.bzl", "driver_tool")

FREEZE_SUFFIX = ".freeze"

_GRAPH = "graph.json"
_MANIFEST = "manifest.json"
_WEIGHTS_INFO = "weights.json"
_WEIGHTS = "weights.safetensors"

def frozen_files(label, files):
    """The parts of a frozen folder.

    Args:
        label: string, whom an error names.
        files: list of File.

    Returns:
        A struct of File: graph, manifest, weights_info, weights (None where the folder has none).
    """
    found = {}
    for file in files:
        if file.basename in [_GRAPH, _MANIFEST, _WEIGHTS_INFO, _WEIGHTS]:
            if file.basename in found:
                fail("{}: frozen has two files {}: {} and {}; give the files of one folder".format(
                    label,
                    file.basename,
                    found[file.basename].short_path,
                    file.short_path,
                ))
            found[file.basename] = file
    missing = [name for name in [_GRAPH, _MANIFEST, _WEIGHTS_INFO] if name not in found]
    if missing:
        fail("{}: frozen lacks {}; give all files that `bazel run` of the model's {} target wrote: glob([\"NAME.frozen/*\"])".format(
            label,
            ", ".join(missing),
            FREEZE_SUFFIX,
        ))
    return struct(
        graph = found[_GRAPH],
        manifest = found[_MANIFEST],
        weights_info = found[_WEIGHTS_INFO],
        weights = found.get(_WEIGHTS),
    )

def _torch_freeze_impl(ctx):
    program = ctx.attr.program[TorchProgramInfo]
    return driver_tool(
        ctx,
        subcommand = "freeze",
        flags = [
            "--target=" + user_label(ctx.label),
            "--model=" + program.label,
            "--repository=" + ctx.label.repo_name,
            "--package=" + ctx.label.package,
            "--folder=" + (ctx.attr.folder or program.name + ".frozen"),
        ],
        file_flags = [
            ("--graph", program.graph),
            ("--weights", program.weights),
            ("--manifest", program.manifest),
        ],
        context = True,
    )

torch_freeze = rule(
    implementation = _torch_freeze_impl,
    doc = """`bazel run` it to write a program into the source tree, beside the BUILD file.

The folder `NAME.frozen` gets `graph.json` and `manifest.json`, laid out for reviews, and
`weights.json`: the digests of the weights and where to fetch them. `torch_import(frozen = ...)`
builds from it. Flags after `--`: `--with_weights` puts the weights into the folder, too;
`--weights_to=FILE` writes them elsewhere; `--url=URL` notes where they can be fetched.""",
    attrs = {
        "program": attr.label(
            doc = "The program: a `torch_export` target.",
            mandatory = True,
            providers = [TorchProgramInfo],
        ),
        "folder": attr.string(doc = "The folder's name in the package. Default: the model's name and `.frozen`."),
    },
    executable = True,
    toolchains = [TORCH_TOOLCHAIN],
)

def _torch_frozen_test_impl(ctx):
    program = ctx.attr.program[TorchProgramInfo]
    frozen = frozen_files(model_label(ctx.label), ctx.files.frozen)
    freeze = ctx.attr.freeze or "//{}:{}{}".format(ctx.label.package, model_name(ctx.attr.program.label), FREEZE_SUFFIX)
    return driver_tool(
        ctx,
        subcommand = "frozen_diff",
        flags = ["--label=" + program.label, "--freeze=" + freeze],
        file_flags = [
            ("--graph", program.graph),
            ("--weights", program.weights),
            ("--manifest", program.manifest),
            ("--frozen_graph", frozen.graph),
            ("--frozen_manifest", frozen.manifest),
            ("--frozen_weights", frozen.weights_info),
        ],
    )

torch_frozen_test = rule(
    implementation = _torch_frozen_test_impl,
    doc = """Fails when a model's source no longer exports the program that lies frozen in the source tree.

The log has the differences of manifest, graph and weights.""",
    attrs = {
        "program": attr.label(
            doc = "The program as the source exports it now: a `torch_export` target.",
            mandatory = True,
            providers = [TorchProgramInfo],
        ),
        "frozen": attr.label_list(
            doc = 'The files of the frozen folder: `glob(["encoder.frozen/*"])`.',
            mandatory = True,
            allow_files = True,
        ),
        "freeze": attr.string(doc = "What the log tells to run. Default: the program's model with `.freeze`."),
    },
    test = True,
    toolchains = [TORCH_TOOLCHAIN],
)
