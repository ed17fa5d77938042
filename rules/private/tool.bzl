"""The driver as a program that `bazel run` and `bazel test` start."""

load(":driver.bzl", "TORCH_TOOLCHAIN")

# In a test and under `bazel run` the working directory is the runfiles' already; a program that is
# started by its path finds them beside itself.
_SCRIPT = """\
#!/bin/sh
if [ -z "$TEST_SRCDIR" ] && [ -z "$BUILD_WORKSPACE_DIRECTORY" ] && [ -d "$0.runfiles/{workspace}" ]; then
  here=$PWD
  cd "$0.runfiles/{workspace}" || exit 1
fi
exec {command}{context} "$@"
"""

# The driver drops the environment before it does anything.
_CONTEXT = """ \\
  --workspace="$BUILD_WORKSPACE_DIRECTORY" \\
  --working_directory="${BUILD_WORKING_DIRECTORY:-$here}\""""

def quote(text):
    """`text` as one word of a shell's command."""
    return "'" + text.replace("'", "'\\''") + "'"

def driver_tool(ctx, subcommand, flags = [], file_flags = [], context = False):
    """Makes the target a program that runs a subcommand which needs no torch.

    Args:
        ctx: the rule's context; the rule must use TORCH_TOOLCHAIN.
        subcommand: the driver's subcommand.
        flags: list of string.
        file_flags: list of (flag, File).
        context: whether the program is told the workspace and the working directory of `bazel run`.

    Returns:
        A list of providers.
    """
    torch = ctx.toolchains[TORCH_TOOLCHAIN].torch
    python = torch.python if type(torch.python) == "string" else torch.python.short_path
    command = [python, "-I", "-S", torch.driver_main.short_path, subcommand] + flags
    command += ["{}={}".format(flag, file.short_path) for flag, file in file_flags]
    script = ctx.actions.declare_file(ctx.label.name + ".sh")
    ctx.actions.write(
        script,
        _SCRIPT.format(
            command = " ".join([quote(word) for word in command]),
            context = _CONTEXT if context else "",
            workspace = ctx.workspace_name,
        ),
        is_executable = True,
    )
    python_file = [torch.python] if type(torch.python) == "File" else []
    return [DefaultInfo(
        executable = script,
        runfiles = ctx.runfiles(
            files = python_file + [file for _, file in file_flags],
            transitive_files = depset(transitive = [torch.driver_files, torch.python_files]),
        ),
    )]
