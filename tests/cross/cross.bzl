"""Programs and tests that are built for another platform than the one that the test runs on."""

def _to_platform_impl(_settings, attr):
    return {"//command_line_option:platforms": str(attr.platform)}

_to_platform = transition(
    implementation = _to_platform_impl,
    inputs = [],
    outputs = ["//command_line_option:platforms"],
)

_PLATFORM = {
    "platform": attr.label(mandatory = True, doc = "What to build for."),
    "_allowlist_function_transition": attr.label(default = "@bazel_tools//tools/allowlists/function_transition_allowlist"),
}

def _one(targets):
    # An attribute with a transition is a list.
    return targets[0] if type(targets) == type([]) else targets

def _platform_binary_impl(ctx):
    target = _one(ctx.attr.binary)
    program = ctx.actions.declare_file(ctx.label.name)
    ctx.actions.symlink(output = program, target_file = target[DefaultInfo].files_to_run.executable, is_executable = True)
    return [DefaultInfo(
        executable = program,
        files = depset([program]),
        runfiles = ctx.runfiles([program]).merge(target[DefaultInfo].default_runfiles),
    )]

platform_binary = rule(
    implementation = _platform_binary_impl,
    doc = "A program, built for `platform`, as a file for tests.",
    executable = True,
    attrs = _PLATFORM | {
        "binary": attr.label(mandatory = True, cfg = _to_platform, doc = "The program."),
    },
)

def _platform_file_impl(ctx):
    return [DefaultInfo(files = depset(transitive = [target[DefaultInfo].files for target in ctx.attr.srcs]))]

platform_files = rule(
    implementation = _platform_file_impl,
    doc = "The default outputs of targets, built for `platform`.",
    attrs = _PLATFORM | {
        "srcs": attr.label_list(mandatory = True, cfg = _to_platform, doc = "The targets."),
    },
)

def _platform_test_impl(ctx):
    target = _one(ctx.attr.test)
    program = target[DefaultInfo].files_to_run.executable
    runfiles = ctx.runfiles([program]).merge(target[DefaultInfo].default_runfiles)
    command = [program.short_path]
    if ctx.attr.run_under:
        command.insert(0, ctx.executable.run_under.short_path)
        runfiles = runfiles.merge(ctx.attr.run_under[DefaultInfo].default_runfiles)
    script = ctx.actions.declare_file(ctx.label.name + ".sh")

    # The folder that a test starts in is the one that short paths begin at.
    lines = ["#!/bin/sh"] + ["export {}='{}'".format(*item) for item in ctx.attr.env.items()]
    lines.append("exec {} \"$@\"".format(" ".join(["'{}'".format(word) for word in command])))
    ctx.actions.write(script, "\n".join(lines) + "\n", is_executable = True)
    return [DefaultInfo(executable = script, runfiles = runfiles)]

platform_test = rule(
    implementation = _platform_test_impl,
    doc = "A test that is built for `platform` and runs here, in an emulator.",
    test = True,
    attrs = _PLATFORM | {
        "env": attr.string_dict(doc = "Variables of the test."),
        "run_under": attr.label(
            executable = True,
            cfg = "exec",
            doc = "The emulator. Without one the test itself knows how to run on this machine.",
        ),
        "test": attr.label(mandatory = True, cfg = _to_platform, doc = "The test."),
    },
)
