"""Rules whose actions unpack wheels: into a site-packages folder, or as single files.

Torch always runs on the exec platform. So the unpacked files belong only to the exec configuration: tests and actions share
them, and so do builds with and without `-c opt`.
"""

def _unpack(ctx, outputs, progress_message, flags = []):
    """Declares the action that unpacks the wheels.

    Args:
      ctx: the rule's context.
      outputs: dict from a flag to the File that it names.
      progress_message: what Bazel shows while it runs.
      flags: list of string: more flags.
    """
    startup = ctx.actions.args()
    startup.add_all(["-S", "-s", "-B"])
    startup.add(ctx.file._unpacker)
    args = ctx.actions.args()
    args.use_param_file("@%s")
    args.set_param_file_format("multiline")
    for flag, file in outputs.items():
        args.add_all([file], expand_directories = False, format_each = flag.replace("%", "%%") + "=%s")
    args.add_all(flags)
    args.add_all(ctx.files.wheels)
    ctx.actions.run(
        mnemonic = "UnpackWheels",
        executable = ctx.file.python,
        arguments = [startup, args],
        inputs = ctx.files.wheels + ctx.files.python_files,
        tools = [ctx.file._unpacker] + ctx.files._unpacker_files,
        outputs = outputs.values(),
        # The order of sets affects the bytecode.
        env = {"PYTHONHASHSEED": "0"},
        progress_message = progress_message,
        # The interpreter is an attribute, because the toolchain itself contains what this rule makes.
        toolchain = None,
    )

def _unpacked_site_impl(ctx):
    site = ctx.actions.declare_directory(ctx.attr.folder)
    flags = ["--exclude=" + pattern for pattern in ctx.attr.exclude]
    if ctx.attr.check_import:
        flags.append("--check_import=" + ctx.attr.check_import)
    _unpack(ctx, {"--out": site}, "Unpacking the wheels of %{label}", flags)
    return [DefaultInfo(files = depset([site]))]

def _unpacked_files_impl(ctx):
    outputs = {
        "--member=" + member: ctx.actions.declare_file("{}/{}".format(ctx.attr.folder, member.rpartition("/")[2]))
        for member in ctx.attr.members
    }
    _unpack(ctx, outputs, "Unpacking %{label}")
    return [DefaultInfo(files = depset(outputs.values()))]

_COMMON_ATTRS = {
    "folder": attr.string(mandatory = True, doc = "The folder to write, below the package's."),
    "python": attr.label(allow_single_file = True, mandatory = True, cfg = "exec", doc = "The interpreter."),
    "python_files": attr.label_list(allow_files = True, cfg = "exec", doc = "What the interpreter needs."),
    "wheels": attr.label_list(allow_files = [".whl"], doc = "The wheels."),
    "_unpacker": attr.label(default = ":unpack_wheels.py", allow_single_file = True, cfg = "exec"),
    "_unpacker_files": attr.label(default = ":unpack_wheels_files", allow_files = True, cfg = "exec"),
}

_unpacked_site = rule(
    implementation = _unpacked_site_impl,
    attrs = _COMMON_ATTRS | {
        "check_import": attr.string(doc = "A module that must be importable then."),
        "exclude": attr.string_list(doc = "Patterns of files to leave out, by their paths below the folder; `*` goes across `/`."),
    },
)

_unpacked_files = rule(
    implementation = _unpacked_files_impl,
    attrs = _COMMON_ATTRS | {
        "members": attr.string_list(mandatory = True, doc = "Files by their paths below site-packages."),
    },
)

def _exec_files_impl(ctx):
    return [DefaultInfo(files = depset(ctx.files.srcs), runfiles = ctx.runfiles(ctx.files.srcs))]

_exec_files = rule(
    implementation = _exec_files_impl,
    attrs = {"srcs": attr.label_list(allow_files = True, cfg = "exec", doc = "What to hand on from the exec configuration.")},
)

def _in_exec_configuration(unpacked, name, exec_compatible_with = [], **kwargs):
    unpacked(
        name = name + ".unpacked",
        exec_compatible_with = exec_compatible_with,
        tags = ["manual"],
        visibility = ["//visibility:private"],
        **kwargs
    )

    # If there are several exec platforms, this rule must run on one that the interpreter is for.
    _exec_files(name = name, srcs = [":" + name + ".unpacked"], exec_compatible_with = exec_compatible_with)

def site_packages(name, folder = "site-packages", **kwargs):
    """Wheels unpacked into one directory artifact.

    Args:
      name: the target's name.
      folder: the directory's name.
      **kwargs: `wheels`, `exclude`, `check_import`, `python`, `python_files`, `exec_compatible_with`.
    """
    _in_exec_configuration(_unpacked_site, name, folder = folder, **kwargs)

def wheel_files(name, folder, **kwargs):
    """Single files of wheels, all in one folder.

    Args:
      name: the target's name.
      folder: the folder's name.
      **kwargs: `wheels`, `members`, `python`, `python_files`, `exec_compatible_with`.
    """
    _in_exec_configuration(_unpacked_files, name, folder = folder, **kwargs)
