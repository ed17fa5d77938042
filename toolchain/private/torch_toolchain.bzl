"""The toolchain for the exec platform: an interpreter, torch, and the driver that actions run."""

load("@bazel_skylib//rules:common_settings.bzl", "BuildSettingInfo")
load("@rules_python//python:py_info.bzl", "PyInfo")
load("@rules_python//python:py_runtime_info.bzl", "PyRuntimeInfo")
load(":package_site.bzl", "add_site", "site_of_packages")

TorchToolchainInfo = provider(
    doc = "The tools that run in actions. Found as `ctx.toolchains[\"@rules_aoti//toolchain:toolchain_type\"].torch`.",
    fields = {
        "barrier": "string: what to do if the kernel can't keep a step from undeclared files or the network: `auto`, `required`, `off`.",
        "driver_files": "depset of File: all files of the driver, `driver_main` among them.",
        "driver_main": "File: the driver's entry point, run as `python -I -S <driver_main>`.",
        "lock": "File or None: the hash-locked requirements that the packages were installed from.",
        "inputs": "depset of File: all files of the toolchain that an action needs to run the driver.",
        "python": "File, or string with an absolute path: the interpreter.",
        "python_files": "depset of File: files that the interpreter needs besides `python`.",
        "python_version": "string: such as `3.11`.",
        "site": "depset of File: the packages' files. From a lock, it is a single directory.",
        "site_directories": "list of File: directories that go onto `sys.path`, as artifacts.",
        "site_inside": "list of struct(directory, path): directories inside of artifacts that go onto `sys.path`: the artifact, and the path below it.",
        "site_paths": "list of string: directories that go onto `sys.path`, as exec paths, if they are not artifacts.",
        "version": "string: torch's full version, such as `2.13.0+cpu`; without the part after `+` if that is unknown.",
        "worker_files": "depset of File: files whose changes restart a worker, in addition to `python` and `driver_files`.",
    },
)

def add_site_arguments(args, torch):
    """Adds a `--site=<directory>` for each directory that the driver puts onto `sys.path`.

    Args:
      args: the `Args` object of the action.
      torch: the `TorchToolchainInfo`, or the `TritonToolchainInfo`.
    """
    add_site(args, struct(
        directories = torch.site_directories,
        inside = torch.site_inside,
        paths = torch.site_paths,
    ))

def _interpreter(ctx):
    target = ctx.attr.python
    if PyRuntimeInfo not in target:
        if len(ctx.files.python) != 1:
            fail("{}: python = \"{}\" must be one file or a py_runtime, but it is {} files. Set its other files in `python_files`.".format(
                ctx.label,
                target.label,
                len(ctx.files.python),
            ))
        return ctx.files.python[0], depset(ctx.files.python_files)
    runtime = target[PyRuntimeInfo]
    files = depset(ctx.files.python_files, transitive = [runtime.files] if runtime.files else [])
    return runtime.interpreter or runtime.interpreter_path, files

def _torch_toolchain_impl(ctx):
    if bool(ctx.file.site) == bool(ctx.attr.packages):
        fail("{}: set exactly one of `site` (a site-packages directory) and `packages` (py_library targets).".format(ctx.label))
    if ctx.file.site:
        site = struct(directories = [ctx.file.site], files = depset([ctx.file.site]), inside = [], paths = [])
    else:
        site = site_of_packages(ctx, ctx.attr.packages)
    python, python_files = _interpreter(ctx)
    driver_files = depset([ctx.file.driver], transitive = [depset(ctx.files.driver_files)])
    python_file = [python] if type(python) == "File" else []
    worker_files = depset(ctx.files.worker_files) if ctx.attr.worker_files else python_files
    info = TorchToolchainInfo(
        barrier = ctx.attr.barrier or ctx.attr._barrier[BuildSettingInfo].value,
        driver_files = driver_files,
        driver_main = ctx.file.driver,
        lock = ctx.file.lock,
        inputs = depset(python_file, transitive = [driver_files, python_files, worker_files, site.files]),
        python = python,
        python_files = python_files,
        python_version = ctx.attr.python_version,
        site = site.files,
        site_directories = site.directories,
        site_inside = site.inside,
        site_paths = site.paths,
        version = ctx.attr.version,
        worker_files = worker_files,
    )
    return [platform_common.ToolchainInfo(torch = info), info]

torch_toolchain = rule(
    implementation = _torch_toolchain_impl,
    doc = "The torch toolchain of the exec platform. Type: `@rules_aoti//toolchain:toolchain_type`.",
    attrs = {
        "barrier": attr.string(
            doc = """What to do if the kernel can't keep a step from undeclared files and the network: `auto` prints a
warning in the step's output, `required` fails. `off` disables the barrier on every kernel. Empty: the flag
`@rules_aoti//toolchain:barrier`.""",
            values = ["", "auto", "off", "required"],
        ),
        "driver": attr.label(
            default = Label("//toolchain:driver_main"),
            allow_single_file = True,
            cfg = "exec",
            doc = "The program that actions run.",
        ),
        "driver_files": attr.label_list(
            default = [Label("//toolchain:driver_files")],
            allow_files = True,
            cfg = "exec",
            doc = "The driver's other files.",
        ),
        "lock": attr.label(
            allow_single_file = True,
            doc = "The lock that the packages were installed from: its digest and its packages go into provenance and SBOMs.",
        ),
        "packages": attr.label_list(
            cfg = "exec",
            doc = """`py_library`-like targets with torch, numpy, sympy, safetensors and setuptools and their dependencies,
in place of `site`. Targets of rules_python, aspect_rules_py and rules_pycross are suitable.""",
            providers = [PyInfo],
        ),
        "python": attr.label(
            mandatory = True,
            allow_files = True,
            cfg = "exec",
            doc = "The interpreter: a file, or a `py_runtime`.",
        ),
        "python_files": attr.label_list(
            allow_files = True,
            cfg = "exec",
            doc = "Files that the interpreter needs, such as its standard library, if they aren't on the machine.",
        ),
        "python_version": attr.string(mandatory = True, doc = "The interpreter's version, such as `3.11`."),
        "site": attr.label(
            allow_single_file = True,
            cfg = "exec",
            doc = "A site-packages folder as one directory artifact, in place of `packages`.",
        ),
        "version": attr.string(mandatory = True, doc = "torch's version, such as `2.13.0`."),
        "worker_files": attr.label_list(
            allow_files = True,
            cfg = "exec",
            doc = """Files that change whenever `python_files` or the packages do: Bazel then replaces workers that have the
old packages in memory. Default: `python_files`. Set this if `python_files` is a source directory, because Bazel 7.4 to 8.4
crashes if a source directory is among the files of a worker.""",
        ),
        "_barrier": attr.label(
            default = Label("//toolchain:barrier"),
            providers = [BuildSettingInfo],
        ),
    },
    provides = [platform_common.ToolchainInfo, TorchToolchainInfo],
)
