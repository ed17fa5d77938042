"""The toolchain with Triton, which only the generation of CUDA code uses.

It isn't a part of the torch toolchain, because Bazel fetches all of a toolchain that a target asks for, and Triton is twice
as large as torch.
"""

load("@rules_python//python:py_info.bzl", "PyInfo")
load(":package_site.bzl", "site_of_packages")

TRITON_TOOLCHAIN_TYPE = Label("//toolchain:triton_toolchain_type")

TritonToolchainInfo = provider(
    doc = "Triton, for the actions that generate CUDA code. Found as `ctx.toolchains[\"@rules_aoti//toolchain:triton_toolchain_type\"].triton`.",
    fields = {
        "python_version": "string: the Python version that Triton's libraries are for, such as `3.11`.",
        "site": "depset of File: the packages' files. From a lock, it is a single directory.",
        "site_directories": "list of File: directories that go onto `sys.path`, as artifacts.",
        "site_inside": "list of struct(directory, path): directories inside of artifacts that go onto `sys.path`: the artifact, and the path below it.",
        "site_paths": "list of string: directories that go onto `sys.path`, as exec paths, if they are not artifacts.",
        "version": "string: Triton's version, such as `3.7.1`.",
        "worker_files": "depset of File: files whose changes restart a worker.",
    },
)

def _triton_toolchain_impl(ctx):
    if bool(ctx.file.site) == bool(ctx.attr.packages):
        fail("{}: set exactly one of `site` (a site-packages directory) and `packages` (py_library targets).".format(ctx.label))
    if ctx.file.site:
        site = struct(directories = [ctx.file.site], files = depset([ctx.file.site]), inside = [], paths = [])
    else:
        site = site_of_packages(ctx, ctx.attr.packages)
    info = TritonToolchainInfo(
        python_version = ctx.attr.python_version,
        site = site.files,
        site_directories = site.directories,
        site_inside = site.inside,
        site_paths = site.paths,
        version = ctx.attr.version,
        worker_files = depset(ctx.files.worker_files),
    )
    return [platform_common.ToolchainInfo(triton = info), info]

triton_toolchain = rule(
    implementation = _triton_toolchain_impl,
    doc = """Triton for the exec platform. Type: `@rules_aoti//toolchain:triton_toolchain_type`.

`torch.toolchain()` makes one, which is fetched when a model with `device = "cuda"` is built. Declare your own beside a
`torch_toolchain` of your own.""",
    attrs = {
        "packages": attr.label_list(
            cfg = "exec",
            doc = "`py_library`-like targets with Triton, such as `@my_pip//triton`, in place of `site`.",
            providers = [PyInfo],
        ),
        "python_version": attr.string(mandatory = True, doc = "The Python version of the torch toolchain, such as `3.11`."),
        "site": attr.label(
            allow_single_file = True,
            cfg = "exec",
            doc = "A folder with Triton as one directory artifact, in place of `packages`.",
        ),
        "version": attr.string(mandatory = True, doc = "Triton's version, such as `3.7.1`."),
        "worker_files": attr.label_list(
            allow_files = True,
            cfg = "exec",
            doc = "Files that change whenever the packages do: Bazel then replaces workers that have the old ones in memory.",
        ),
    },
    provides = [platform_common.ToolchainInfo, TritonToolchainInfo],
)

_MISSING = (
    "{}: CUDA code is generated with Triton, and no triton_toolchain is registered for the machine that builds, or for its " +
    "execution platform. The one of rules_aoti is for Linux on x86-64 and AArch64, as Triton's wheels are; declare one of " +
    'your own for others: see "Triton" in docs/toolchain.md of rules_aoti'
)

def _current_triton_impl(ctx):
    toolchain = ctx.toolchains[TRITON_TOOLCHAIN_TYPE]
    if not toolchain:
        fail(_MISSING.format(ctx.label))
    return [toolchain.triton]

current_triton = rule(
    implementation = _current_triton_impl,
    doc = "The Triton of the toolchain. Models for CUDA depend on it, in the configuration of the exec platform; no other target does.",
    provides = [TritonToolchainInfo],
    toolchains = [config_common.toolchain_type(TRITON_TOOLCHAIN_TYPE, mandatory = False)],
)
