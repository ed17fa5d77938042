"""A C++ toolchain for AArch64 Linux, out of PyPI's ziglang wheel: clang, lld, libc++ and glibc's headers.

```starlark
zig = use_extension("//tools/zig:extensions.bzl", "zig", dev_dependency = True)
use_repo(zig, "zig_toolchains")

register_toolchains("@zig_toolchains//:all", dev_dependency = True)
```

Registering it fetches nothing: the wheel is fetched when something is built for AArch64.
"""

_VERSION = "0.17.0"
_SHA256 = "97079827064a7492cce5541ceb438ae8003ce1e54e399676da2d62fb7a5dc08b"

# The oldest glibc that binaries run with: that of manylinux_2_28, like torch's wheels.
_GLIBC = "2.28"

_HUB = """\
toolchain(
    name = "linux_aarch64",
    exec_compatible_with = ["{os}:linux", "{cpu}:x86_64"],
    target_compatible_with = ["{os}:linux", "{cpu}:aarch64"],
    toolchain = "@{repo}//:toolchain",
    toolchain_type = "{toolchain_type}",
)
"""

# Headers are one directory: an action that compiles has one input more, not 3,000.
_BUILD = """\
load("@rules_cc//cc/toolchains:cc_toolchain.bzl", "cc_toolchain")
load("{config_bzl}", "cross_cc_toolchain_config")

package(default_visibility = ["//visibility:public"])

filegroup(
    name = "compiler",
    srcs = ["include"] + glob(["bin/*"]),
)

filegroup(
    name = "linker",
    srcs = glob(["bin/*", "lib/*"]),
)

filegroup(
    name = "all",
    srcs = [":compiler", ":linker"],
)

cross_cc_toolchain_config(
    name = "config",
    compiler = "clang",
    cpu = "{cpu}",
    include_directories = ["include"],
    target = "{cpu}-linux-gnu",
    tools = {{
        "ar": "bin/ar",
        "cpp": "bin/cc",
        "gcc": "bin/cc",
        "ld": "bin/ld.lld",
        "objcopy": "bin/objcopy",
        "strip": "bin/strip",
    }},
    unfiltered_compile_flags = ["-ffile-compilation-dir=."],
)

cc_toolchain(
    name = "toolchain",
    all_files = ":all",
    ar_files = ":linker",
    as_files = ":compiler",
    compiler_files = ":compiler",
    dwp_files = ":linker",
    linker_files = ":all",
    objcopy_files = ":linker",
    strip_files = ":linker",
    supports_param_files = True,
    toolchain_config = ":config",
)
"""

def _zig_repo_impl(rctx):
    rctx.watch(rctx.path(rctx.attr._pip_runner))
    rctx.watch(rctx.path(rctx.attr._installer))
    python = json.decode(rctx.read(rctx.attr._python))["executable"]
    rctx.report_progress("making a C++ toolchain for {} of zig (minutes)".format(rctx.attr.cpu))
    result = rctx.execute(
        [
            python,
            "-B",
            rctx.attr._installer,
            "--requirement=ziglang=={} --hash=sha256:{}".format(_VERSION, _SHA256),
            "--cpu=" + rctx.attr.cpu,
            "--glibc=" + _GLIBC,
        ],
        environment = {"PYTHONPATH": str(rctx.path(rctx.attr._pip_runner).dirname)},
        quiet = True,
        timeout = 3600,
    )
    if result.return_code:
        fail("@{}: {}{}".format(rctx.name, result.stdout, result.stderr))
    rctx.file("BUILD.bazel", _BUILD.format(
        config_bzl = Label("//tools/cross_cc:cc_toolchain_config.bzl"),
        cpu = rctx.attr.cpu,
    ))

_zig_repo = repository_rule(
    implementation = _zig_repo_impl,
    doc = "A cc_toolchain for one CPU.",
    attrs = {
        "cpu": attr.string(mandatory = True, doc = "The target's CPU, such as `aarch64`."),
        "_installer": attr.label(default = Label("//tools/zig:install_zig.py"), allow_single_file = True),
        "_pip_runner": attr.label(default = Label("//toolchain/private:pip_runner.py"), allow_single_file = True),
        "_python": attr.label(default = Label("@torch_python//:python.json"), allow_single_file = True),
    },
)

def _hub_repo_impl(rctx):
    rctx.file("BUILD.bazel", _HUB.format(
        cpu = str(Label("@platforms//cpu:x86_64")).rpartition(":")[0],
        os = str(Label("@platforms//os:linux")).rpartition(":")[0],
        repo = rctx.attr.repo,
        toolchain_type = Label("@bazel_tools//tools/cpp:toolchain_type"),
    ))

_hub_repo = repository_rule(
    implementation = _hub_repo_impl,
    doc = "The repository whose `//:all` is registered: `toolchain()` targets and nothing else.",
    attrs = {"repo": attr.string(mandatory = True, doc = "The toolchain's repository.")},
)

def _zig_impl(mctx):
    _zig_repo(name = "zig_linux_aarch64", cpu = "aarch64")
    _hub_repo(name = "zig_toolchains", repo = "zig_linux_aarch64")
    return mctx.extension_metadata(reproducible = True)

zig = module_extension(
    implementation = _zig_impl,
    doc = "Makes `@zig_toolchains`.",
)
