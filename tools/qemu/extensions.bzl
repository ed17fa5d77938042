"""qemu-user and the C library of AArch64, out of Debian's packages.

`@qemu//:aarch64` runs programs for AArch64 Linux. `@qemu//:x86_64` runs those for x86-64, on a CPU
of one's choice: `QEMU_CPU=Nehalem`. Nothing is fetched before a test needs one of them.
"""

_BUILD = """\
load("@rules_shell//shell:sh_binary.bzl", "sh_binary")

package(default_visibility = ["//visibility:public"])

[
    sh_binary(
        name = cpu,
        srcs = [cpu + ".sh"],
        data = ["bin/qemu-" + cpu] + data,
    )
    for cpu, data in {
        "aarch64": glob(["sysroot/aarch64/**"]),
        "x86_64": [],
    }.items()
]
"""

# What is fetched depends on these too.
_VARIABLES = ["DEBIAN_MIRROR"]

def _qemu_repo_impl(rctx):
    variables = {name: rctx.getenv(name, "") for name in _VARIABLES}
    for source in [rctx.attr._installer, rctx.attr._suite] + rctx.attr._airgap:
        rctx.watch(rctx.path(source))
    python = json.decode(rctx.read(rctx.attr._python))["executable"]
    rctx.report_progress("fetching qemu-user")
    result = rctx.execute(
        [python, "-B", rctx.attr._installer, "--cpu=aarch64", "--cpu=x86_64"],
        environment = {name: value for name, value in variables.items() if value} | {
            "PYTHONPATH": str(rctx.path(rctx.attr._installer).dirname.dirname),
        },
        quiet = True,
        timeout = 3600,
    )
    if result.return_code:
        fail("@{}: {}{}".format(rctx.name, result.stdout, result.stderr))
    rctx.file("BUILD.bazel", _BUILD)

_qemu_repo = repository_rule(
    implementation = _qemu_repo_impl,
    doc = "Emulators, each as an executable.",
    attrs = {
        "_airgap": attr.label_list(
            default = [
                Label("//tools/airgap:{}.py".format(name))
                for name in ["base", "deb", "debian", "fetch", "store", "truststore"]
            ],
            allow_files = True,
        ),
        "_installer": attr.label(default = Label("//tools/qemu:install_qemu.py"), allow_single_file = True),
        "_python": attr.label(default = Label("@torch_python//:python.json"), allow_single_file = True),
        "_suite": attr.label(default = Label("//tools/debian_package:suite.py"), allow_single_file = True),
    },
)

def _qemu_impl(mctx):
    _qemu_repo(name = "qemu")
    return mctx.extension_metadata(reproducible = True)

qemu = module_extension(
    implementation = _qemu_impl,
    doc = "Makes `@qemu`.",
)
