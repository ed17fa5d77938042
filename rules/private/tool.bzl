"""The driver as a program that `bazel run` and `bazel test` start."""

load(":driver.bzl", "TORCH_TOOLCHAIN", "check_python_of_triton", "loaded_operators", "operator_program_flags", "repository_root")
load(":names.bzl", "runfiles_path")

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

def shell_words(words):
    """`words` as a shell's command."""
    return " ".join(["'" + word.replace("'", "'\\''") + "'" for word in words])

def _runfiles_of_exec_path(path):
    return "../" + path[len("external/"):] if path.startswith("external/") else path

def _site_words(site):
    return ["--site=" + directory.short_path for directory in site.site_directories] + \
           ["--site={}/{}".format(inside.directory.short_path, inside.path) for inside in site.site_inside] + \
           ["--site=" + _runfiles_of_exec_path(path) for path in site.site_paths]

def new_command(ctx, subcommand, with_torch = False, triton = None):
    """A command that runs the driver in its runfiles. Its functions record a file together with the flag that names it.

    Args:
        ctx: the rule's context; the rule must use TORCH_TOOLCHAIN.
        subcommand: the driver's subcommand.
        with_torch: whether the subcommand needs the packages.
        triton: TritonToolchainInfo or None: of the modules that the subcommand imports.

    Returns:
        A struct of functions: `flag(text)`, `input(flag, file)`, and `module(info)` for a TorchModuleInfo; and of what
        they recorded: `words` (list of string), `files` (list of File), `transitive_files` (list of depset of File).
    """
    torch = ctx.toolchains[TORCH_TOOLCHAIN].torch
    from_machine = type(torch.python) == "string"
    words = [torch.python if from_machine else torch.python.short_path, "-I", "-S", torch.driver_main.short_path]
    files = [] if from_machine else [torch.python]
    transitive_files = [torch.driver_files, torch.python_files]
    if with_torch:
        words.extend(_site_words(torch))
        transitive_files = [torch.inputs]
    if triton:
        check_python_of_triton(ctx, torch, triton)
        words.extend(_site_words(triton))
        transitive_files.append(triton.site)
    words.append(subcommand)

    def flag(text):
        words.append(text)

    def input(flag, file):
        words.append("{}={}".format(flag, file.short_path))
        files.append(file)

    def module(info):
        sources = info.files.to_list()
        words.extend(["--source={}={}".format(runfiles_path(file), file.short_path) for file in sources])
        words.extend(["--import_root=" + root for root in info.imports.to_list()])
        words.extend(["--import_root=" + root for root in {repository_root(file): None for file in sources}])
        words.extend(["--weight={}={}".format(runfiles_path(file), file.short_path) for file in info.weights])
        for library in loaded_operators(info):
            input("--operators={}".format(library.label), library.file)
        words.extend(["--operator_module=" + runfiles_path(file) for file in info.operator_modules])
        words.extend(operator_program_flags(info))
        words.extend(["--triton_module=" + runfiles_path(file) for file in info.triton_modules])
        transitive_files.append(info.files)

    return struct(
        files = files,
        flag = flag,
        input = input,
        module = module,
        transitive_files = transitive_files,
        words = words,
    )

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
    command = new_command(ctx, subcommand)
    for flag in flags:
        command.flag(flag)
    for flag, file in file_flags:
        command.input(flag, file)
    return [program_of(ctx, command, context)]

def program_of(ctx, command, context = False, runfiles = []):
    """Makes the target a program that runs a command.

    Args:
        ctx: the rule's context.
        command: what `new_command` returned.
        context: whether the program is told the workspace and the working directory of `bazel run`.
        runfiles: list of runfiles, of the command's files.

    Returns:
        DefaultInfo
    """
    script = ctx.actions.declare_file(ctx.label.name + ".sh")
    ctx.actions.write(
        script,
        _SCRIPT.format(
            command = shell_words(command.words),
            context = _CONTEXT if context else "",
            workspace = ctx.workspace_name,
        ),
        is_executable = True,
    )
    own = ctx.runfiles(files = command.files, transitive_files = depset(transitive = command.transitive_files))
    return DefaultInfo(executable = script, runfiles = own.merge_all(runfiles))
