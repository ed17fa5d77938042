"""NAME.tune: measures the kernels of a model's matrix products on a GPU, and writes the tuning file."""

load("@rules_cc//cc:find_cc_toolchain.bzl", "use_cc_toolchain")
load("@rules_cc//cc/common:cc_info.bzl", "CcInfo")
load("//rules:providers.bzl", "AotiLibraryInfo")
load(":aoti_library.bzl", "aoti_library")
load(":aoti_test.bzl", "compare_command", "replay_binary", "with_driver")
load(":driver.bzl", "TORCH_TOOLCHAIN")
load(":names.bzl", "user_label")
load(":tool.bzl", "program_of")

TUNE_SUFFIX = ".tune"

# The model with all kernels that could compute each product.
MEASURED_SUFFIX = "_measured"

def tuning_arguments_error(argument):
    """Why a model of several programs has no tuning file.

    Args:
        argument: the argument of aoti_model that makes it one.

    Returns:
        A message.
    """
    return "tuning together with {}: a tuning file is about the products of one program; remove tuning".format(argument)

def tune_targets(name, program, device, devices, cuda_archs, options, exec_properties, max_points, rtol, atol, visibility, hidden):
    """The program that writes a model's tuning file, where the model is compiled for CUDA.

    Args:
        name: the model's name.
        program: label of its program.
        device: the model's attribute, or a select().
        devices: the model's attribute, or a select().
        cuda_archs: the model's attribute.
        options: the model's attribute.
        exec_properties: of the steps of aoti_library.
        max_points: of the model's test.
        rtol: of the model's test.
        atol: of the model's test.
        visibility: of what users run.
        hidden: dict, what the targets have that wildcards must not build.
    """
    if device != "cuda" and not (type(devices) == "list" and "cuda" in devices):
        return
    aoti_library(
        name = name + MEASURED_SUFFIX,
        program = program,
        device = "cuda",
        cuda_archs = cuda_archs,
        measured = True,
        python = False,
        options = {key: value for key, value in options.items() if not key.startswith("cpp.")} if type(options) == "dict" else options,
        exec_properties = exec_properties,
        visibility = ["//visibility:private"],
        **hidden
    )
    aoti_tune(
        name = name + TUNE_SUFFIX,
        library = ":" + name + MEASURED_SUFFIX,
        file = name + ".tuning.json",
        max_points = max_points,
        rtol = rtol,
        atol = atol,
        visibility = visibility,
        **hidden
    )

def _aoti_tune_impl(ctx):
    library = ctx.attr.library[AotiLibraryInfo]
    replay, runfiles = replay_binary(ctx, library), ctx.runfiles()
    if ctx.attr.cuda_driver:
        replay, runfiles = with_driver(ctx, replay)
    command = compare_command(ctx, "tune", library, replay)
    command.flag("--target=" + user_label(ctx.label))
    command.flag("--repository=" + ctx.label.repo_name)
    command.flag("--package=" + ctx.label.package)
    command.flag("--path=" + "/".join([part for part in [ctx.label.package, ctx.attr.file] if part]))
    return [program_of(ctx, command, context = True, runfiles = [runfiles, ctx.attr.library[DefaultInfo].default_runfiles])]

aoti_tune = rule(
    implementation = _aoti_tune_impl,
    doc = """`bazel run` it on a machine with a GPU to write a model's tuning file into the source tree.

It runs the model with each of the kernels that could compute its products, compares the results as the
model's test does, and measures the kernels.""",
    attrs = {
        "library": attr.label(
            doc = "The model, an `aoti_library` with `measured`.",
            mandatory = True,
            providers = [AotiLibraryInfo, CcInfo],
        ),
        "file": attr.string(doc = "The file's name in the package.", mandatory = True),
        "rtol": attr.string(doc = "As in `aoti_test`."),
        "atol": attr.string(doc = "As in `aoti_test`."),
        "max_points": attr.int(doc = "As in `aoti_test`.", default = 16),
        "device": attr.string(doc = "Empty: the model has one."),
        "cuda_driver": attr.label(doc = "As in `aoti_test`; the emulator's times mean nothing.", allow_files = True),
        "_replay": attr.label(default = "//runtime/testing:replay", providers = [CcInfo]),
    },
    executable = True,
    fragments = ["cpp"],
    toolchains = [TORCH_TOOLCHAIN] + use_cc_toolchain(),
)
