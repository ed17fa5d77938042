"""aoti_test: compares a compiled model with eager PyTorch over the whole declared range."""

load("@rules_cc//cc:find_cc_toolchain.bzl", "use_cc_toolchain")
load("@rules_cc//cc/common:cc_info.bzl", "CcInfo")
load("//rules:providers.bzl", "AotiLibraryInfo")
load(":cc.bzl", "BINDING_COPTS", "cc_toolchain_of", "compile_sources", "executable", "static_library")
load(":driver.bzl", "TORCH_TOOLCHAIN", "write_spec")
load(":names.bzl", "runfiles_path")
load(":tool.bzl", "quote")

_REPLAY_MAIN = """\
#include "{header}"
#include "runtime/testing/replay.h"

int main(int argc, char** argv) {{ return aoti::testing::ReplayMain({cc_class}::Spec(), argc, argv); }}
"""

def _replay_binary(ctx, library):
    """A C++ program that feeds recorded inputs to the model: what is tested is what C++ users link."""
    main = ctx.actions.declare_file(ctx.label.name + ".replay.cc")
    ctx.actions.write(main, _REPLAY_MAIN.format(
        header = "{}/{}".format(library.header.short_path.rpartition("/")[0], library.header.basename).lstrip("/"),
        cc_class = "::{}::{}".format(library.cc_namespace, library.cc_class),
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
    return script

def _runfiles_of_exec_path(path):
    return "../" + path[len("external/"):] if path.startswith("external/") else path

def _aoti_test_impl(ctx):
    library = ctx.attr.library[AotiLibraryInfo]
    program = library.program
    torch = ctx.toolchains[TORCH_TOOLCHAIN].torch
    binary = _replay_binary(ctx, library)
    replay = _emulated(ctx, binary) if ctx.attr.run_under else binary

    spec = {"max_points": ctx.attr.max_points}
    if ctx.attr.rtol:
        spec["rtol"] = float(ctx.attr.rtol)
    if ctx.attr.atol:
        spec["atol"] = float(ctx.attr.atol)
    if program.spec:
        spec["export"] = program.spec
    spec_file = write_spec(ctx, "verify", spec)

    # A test runs in its runfiles, where every path is the file's short path.
    python = torch.python if type(torch.python) == "string" else torch.python.short_path
    command = [python, "-I", "-S", torch.driver_main.short_path]
    command += ["--site=" + f.short_path for f in torch.site_directories]
    command += ["--site={}/{}".format(inside.directory.short_path, inside.path) for inside in torch.site_inside]
    command += ["--site=" + _runfiles_of_exec_path(path) for path in torch.site_paths]
    flags = [
        "verify",
        "--spec=" + spec_file.short_path,
        "--graph=" + program.graph.short_path,
        "--weights=" + program.weights.short_path,
        "--manifest=" + library.manifest.short_path,
        "--replay=" + replay.short_path,
        "--reference=" + ("eager" if program.eager else "program"),
    ]
    module_files = depset()
    if program.eager:
        module_files = program.eager.files
        files = module_files.to_list()
        flags += ["--source={}={}".format(runfiles_path(f), f.short_path) for f in files]
        flags += ["--import_root=" + root for root in program.eager.imports.to_list()]
        flags += ["--import_root=" + root for root in {runfiles_path(f).split("/")[0]: None for f in files}]
        flags += ["--weight={}={}".format(runfiles_path(f), f.short_path) for f in program.eager.weights]

    script = ctx.actions.declare_file(ctx.label.name + ".sh")
    ctx.actions.write(
        script,
        "#!/bin/sh\nexec {} \"$@\"\n".format(" ".join([quote(word) for word in command + flags])),
        is_executable = True,
    )
    runfiles = ctx.runfiles(
        files = [binary, replay, spec_file, program.graph, program.weights, library.manifest],
        transitive_files = depset(transitive = [torch.inputs, module_files]),
    )
    runfiles = runfiles.merge(ctx.attr.library[DefaultInfo].default_runfiles)
    if ctx.attr.run_under:
        runfiles = runfiles.merge(ctx.attr.run_under[DefaultInfo].default_runfiles)
    return [DefaultInfo(executable = script, runfiles = runfiles)]

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
