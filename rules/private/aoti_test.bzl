"""aoti_test: compares a compiled model with eager PyTorch over the whole declared range."""

load("@rules_cc//cc:find_cc_toolchain.bzl", "use_cc_toolchain")
load("@rules_cc//cc/common:cc_info.bzl", "CcInfo")
load("//rules:providers.bzl", "AotiLibraryInfo")
load(":cc.bzl", "BINDING_COPTS", "cc_toolchain_of", "compile_sources", "executable", "static_library")
load(":driver.bzl", "TORCH_TOOLCHAIN", "write_spec")
load(":tool.bzl", "new_command", "shell_words")
load(":torch_custom_ops.bzl", "operators_module")

_REPLAY_MAIN = """\
#include "{header}"
#include "runtime/testing/replay.h"

int main(int argc, char** argv) {{ return aoti::testing::ReplayMain({cc_class}::Spec(), argc, argv{device}); }}
"""

def replay_binary(ctx, library):
    """A C++ program that feeds recorded inputs to the model: what is tested is what C++ users link.

    Args:
        ctx: the context of a rule with the attributes `library`, `device` and `_replay`.
        library: AotiLibraryInfo

    Returns:
        File
    """
    main = ctx.actions.declare_file(ctx.label.name + ".replay.cc")
    ctx.actions.write(main, _REPLAY_MAIN.format(
        header = "{}/{}".format(library.header.short_path.rpartition("/")[0], library.header.basename).lstrip("/"),
        cc_class = "::{}::{}".format(library.cc_namespace, library.cc_class),
        device = ", aoti::DeviceType::k" + ctx.attr.device.capitalize() if ctx.attr.device else "",
    ))
    cc = cc_toolchain_of(ctx)
    deps = [ctx.attr.library[CcInfo], ctx.attr._replay[CcInfo]]
    _, objects = compile_sources(ctx, cc, ctx.label.name + ".replay", [main], BINDING_COPTS, deps)
    linking_context = static_library(ctx, cc, ctx.label.name + ".replay_main", [objects], deps)
    return executable(ctx, cc, ctx.label.name + ".replay", [linking_context])

def _emulated(ctx, binary):
    """A script that runs the binary in the emulator, wherever the test has changed its folder to."""
    script = ctx.actions.declare_file(ctx.label.name + ".replay.sh")
    ctx.actions.write(
        script,
        "#!/bin/sh\nroot=${{0%/{own}}}\nexec \"$root/{emulator}\" \"$root/{binary}\" \"$@\"\n".format(
            own = script.short_path,
            emulator = ctx.executable.run_under.short_path,
            binary = binary.short_path,
        ),
        is_executable = True,
    )
    return script, ctx.runfiles([binary]).merge(ctx.attr.run_under[DefaultInfo].default_runfiles)

def with_driver(ctx, binary):
    """A script that runs the binary with a CUDA driver of the build in place of the machine's.

    Args:
        ctx: the context of a rule with the attribute `cuda_driver`.
        binary: File

    Returns:
        (File, runfiles)
    """
    libraries = [file for file in ctx.files.cuda_driver if file.basename == "libcuda.so.1"]
    if len(libraries) != 1:
        fail("{}: cuda_driver = \"{}\" must have one file libcuda.so.1, it has {}".format(
            ctx.label,
            ctx.attr.cuda_driver.label,
            ", ".join([file.basename for file in ctx.files.cuda_driver]) or "none",
        ))
    script = ctx.actions.declare_file(ctx.label.name + ".replay.sh")
    ctx.actions.write(
        script,
        "#!/bin/sh\nroot=${{0%/{own}}}\nLD_LIBRARY_PATH=\"$root/{folder}\" exec \"$root/{binary}\" \"$@\"\n".format(
            own = script.short_path,
            folder = libraries[0].short_path.rpartition("/")[0],
            binary = binary.short_path,
        ),
        is_executable = True,
    )
    return script, ctx.runfiles([binary] + ctx.files.cuda_driver)

def test_spec(ctx, program):
    """What the test of a program must know.

    Args:
        ctx: the context of a rule with the attributes `max_points`, `rtol` and `atol`.
        program: TorchProgramInfo

    Returns:
        dict
    """
    return {
        "max_points": ctx.attr.max_points,
        "rtol": float(ctx.attr.rtol) if ctx.attr.rtol else None,
        "atol": float(ctx.attr.atol) if ctx.attr.atol else None,
        "export": program.spec,
    }

def compare_command(ctx, subcommand, library, replay):
    """A command that compares a compiled model with PyTorch.

    Args:
        ctx: the context of a rule with the attributes `max_points`, `rtol` and `atol`.
        subcommand: the driver's subcommand.
        library: AotiLibraryInfo
        replay: File: the program that feeds inputs to the model.

    Returns:
        what `new_command` returns
    """
    program = library.program
    if program.eager:
        module = program.eager
    else:
        module = operators_module(program.custom_ops, loaded = True) if program.custom_ops else None
    command = new_command(ctx, subcommand, with_torch = True, triton = module.triton if module else None)
    command.input("--spec", write_spec(ctx, subcommand, test_spec(ctx, program)))
    command.input("--graph", program.graph)
    command.input("--weights", program.weights)
    command.input("--manifest", library.manifest)
    command.input("--replay", replay)
    command.flag("--reference=" + ("eager" if program.eager else "program"))
    if module:
        command.module(module)
    return command

def _aoti_test_impl(ctx):
    library = ctx.attr.library[AotiLibraryInfo]
    program = library.program
    device = ctx.attr.device or library.device
    if device not in library.devices:
        fail('{}: device = "{}", but {} is compiled for {}'.format(ctx.label, device, program.label, ", ".join(library.devices)))
    replay, replay_runfiles = replay_binary(ctx, library), ctx.runfiles()
    if ctx.attr.run_under:
        replay, replay_runfiles = _emulated(ctx, replay)
    elif ctx.attr.cuda_driver:
        if device != "cuda":
            fail('{}: cuda_driver, but {} is tested on the device "{}"; remove cuda_driver'.format(ctx.label, program.label, device))
        replay, replay_runfiles = with_driver(ctx, replay)

    command = compare_command(ctx, "verify", library, replay)

    script = ctx.actions.declare_file(ctx.label.name + ".sh")
    ctx.actions.write(script, "#!/bin/sh\nexec {} \"$@\"\n".format(shell_words(command.words)), is_executable = True)
    runfiles = ctx.runfiles(files = command.files, transitive_files = depset(transitive = command.transitive_files))
    return [DefaultInfo(
        executable = script,
        runfiles = runfiles.merge_all([replay_runfiles, ctx.attr.library[DefaultInfo].default_runfiles]),
    )]

aoti_test = rule(
    implementation = _aoti_test_impl,
    doc = """Compares a compiled model with eager PyTorch.

Both run on the same inputs, at the ends and inside of every dim's declared range, several times in
a row: a model that keeps state must keep the same state. The log tells the largest error of each
output, absolute and relative, and where it is. A program without source (`torch_import`) is
compared with the program run by PyTorch.""",
    attrs = {
        "library": attr.label(
            doc = "The `aoti_library` (or `aoti_model`) to test.",
            mandatory = True,
            providers = [AotiLibraryInfo, CcInfo],
        ),
        "rtol": attr.string(doc = 'Relative tolerance, such as `"1e-4"`. Default: by the dtype of each output.'),
        "atol": attr.string(doc = "Absolute tolerance. Default: by the dtype of each output."),
        "max_points": attr.int(
            doc = "The largest number of combinations of dim sizes to run; both ends of every dim come first.",
            default = 16,
        ),
        "device": attr.string(doc = "The device to test a model for several on, such as `cuda`. Default: the one that it is loaded for by default."),
        "cuda_driver": attr.label(
            doc = """For a model tested on CUDA: the driver to run the model with, in place of the machine's: a target with a
`libcuda.so.1`, such as the emulator `@rules_aoti//tools/ptx_emulator`.""",
            allow_files = True,
        ),
        "run_under": attr.label(
            doc = "For a model of another CPU than the machine's: an emulator such as qemu-user. It gets the model's program and its arguments.",
            executable = True,
            cfg = "exec",
        ),
        "_replay": attr.label(default = "//runtime/testing:replay", providers = [CcInfo]),
    },
    test = True,
    fragments = ["cpp"],
    toolchains = [TORCH_TOOLCHAIN] + use_cc_toolchain(),
)
