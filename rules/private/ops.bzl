"""A model's operators: the table of them, and the list in the source tree that they are compared with."""

load("//rules:providers.bzl", "AotiLibraryInfo", "AotiMethodsInfo")
load(":driver.bzl", "TORCH_TOOLCHAIN", "new_request", "run_driver")
load(":names.bzl", "user_label")
load(":tool.bzl", "driver_tool")

OPS_SUFFIX = ".ops"

_MODEL = attr.label(
    doc = "The `aoti_library`, `aoti_methods_library` or `aoti_model`.",
    mandatory = True,
    providers = [[AotiLibraryInfo], [AotiMethodsInfo]],
)

def ops_lock_error(ops_lock):
    """Why this can't be the name of the list.

    Args:
        ops_lock: string.

    Returns:
        string, or None where it can
    """
    if ops_lock.startswith("/") or ":" in ops_lock or ".." in ops_lock.split("/"):
        return 'ops_lock = "{}": give the name of a file in this package, such as "encoder.ops.txt"'.format(ops_lock)
    return None

def ops_targets(name, ops_lock, test, visibility, hidden):
    """The targets about a model's operators.

    Args:
        name: the model's name.
        ops_lock: the list's name in the package, or empty.
        test: dict, the attributes of the model's tests.
        visibility: of what users run.
        hidden: dict, what the targets have that wildcards must not build.
    """
    ops = name + OPS_SUFFIX
    aoti_ops(name = ops, model = ":" + name, visibility = visibility, **hidden)
    if ops_lock:
        _ops_update(name = ops + ".update", model = ":" + name, lock_name = ops_lock, visibility = visibility, **hidden)
        _ops_test(
            name = ops + "_test",
            model = ":" + name,
            # The file may not be there yet.
            lock = native.glob([ops_lock], allow_empty = True),
            lock_name = ops_lock,
            size = "small",
            **test
        )

def _libraries(ctx):
    """The compiled programs of the model: dict of AotiLibraryInfo by method; the name is empty if there is one program."""
    if AotiMethodsInfo in ctx.attr.model:
        return ctx.attr.model[AotiMethodsInfo].methods
    return {"": ctx.attr.model[AotiLibraryInfo]}

def _table(ctx, method, library):
    name = ctx.label.name.removesuffix(OPS_SUFFIX) + "." + (method + "." if method else "")
    out = ctx.actions.declare_file(name + "operators.txt")
    request = new_request(ctx, "ops")
    request.input("--graph", library.program.graph)
    request.input("--manifest", library.manifest)
    if library.program.locations:
        request.input("--locations", library.program.locations)
    request.input("--functions", ctx.file._slim_functions)
    request.input("--dtypes", ctx.file._slim_dtypes)
    request.output("--out", out)
    run_driver(
        ctx,
        mnemonic = "AotiOperators",
        request = request,
        progress_message = "Listing the operators of {}".format(library.program.label),
    )
    return out

def _aoti_ops_impl(ctx):
    tables = [_table(ctx, method, library) for method, library in _libraries(ctx).items()]
    script = ctx.actions.declare_file(ctx.label.name + ".sh")
    ctx.actions.write(
        script,
        "#!/bin/sh\nexec cat {}\n".format(" ".join(["'{}'".format(table.short_path) for table in tables])),
        is_executable = True,
    )
    return [DefaultInfo(executable = script, files = depset(tables), runfiles = ctx.runfiles(tables))]

aoti_ops = rule(
    implementation = _aoti_ops_impl,
    doc = "The operators that a model's programs call, with the lines of the source and what computes them: `bazel run` prints the table.",
    attrs = {
        "model": _MODEL,
        "_slim_dtypes": attr.label(default = "//runtime/slim:dtypes.txt", allow_single_file = True),
        "_slim_functions": attr.label(default = "//runtime/slim:functions.txt", allow_single_file = True),
    },
    executable = True,
    toolchains = [TORCH_TOOLCHAIN],
)

def _lock_tool(ctx, subcommand, update, flags, file_flags = [], context = False):
    programs = {method: library.program for method, library in _libraries(ctx).items()}
    label = programs[""].label if "" in programs else user_label(ctx.attr.model.label)
    path = "/".join([part for part in [ctx.label.package, ctx.attr.lock_name] if part])
    return driver_tool(
        ctx,
        subcommand = subcommand,
        flags = flags + [
            "--label=" + label,
            "--update=" + update,
            "--path=" + path,
        ] + ["--name=" + method for method in programs],
        file_flags = file_flags + [
            (flag, file)
            for program in programs.values()
            for flag, file in [("--graph", program.graph), ("--manifest", program.manifest)]
        ],
        context = context,
    )

def _ops_test_impl(ctx):
    update = user_label(ctx.label).removesuffix("_test") + ".update"
    return _lock_tool(ctx, "ops_diff", update, [], [("--lock", file) for file in ctx.files.lock])

_LOCK_ATTRS = {
    "model": _MODEL,
    "lock_name": attr.string(doc = "The list's name in the package.", mandatory = True),
}

_ops_test = rule(
    implementation = _ops_test_impl,
    doc = "Fails when a model's programs call other operators than a list in the source tree has.",
    attrs = _LOCK_ATTRS | {
        "lock": attr.label_list(doc = "The list; none before it was written.", allow_files = True),
    },
    test = True,
    toolchains = [TORCH_TOOLCHAIN],
)

def _ops_update_impl(ctx):
    flags = ["--repository=" + ctx.label.repo_name, "--package=" + ctx.label.package]
    return _lock_tool(ctx, "ops_update", user_label(ctx.label), flags, context = True)

_ops_update = rule(
    implementation = _ops_update_impl,
    doc = "`bazel run` it to write the list of a model's operators into the source tree.",
    attrs = _LOCK_ATTRS,
    executable = True,
    toolchains = [TORCH_TOOLCHAIN],
)
