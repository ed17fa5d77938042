"""qemu-user and the C library of AArch64, out of Debian's packages.

`@qemu//:aarch64` runs programs for AArch64 Linux. `@qemu//:x86_64` runs those for x86-64, on a CPU
of one's choice: `QEMU_CPU=Nehalem`. Nothing is fetched before a test needs one of them.
"""

load("//tools/debian_package:installer.bzl", "INSTALLER_ATTRS", "run_installer")

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

def _qemu_repo_impl(rctx):
    rctx.report_progress("fetching qemu-user")
    run_installer(rctx, rctx.attr._installer, ["--cpu=aarch64", "--cpu=x86_64"])
    rctx.file("BUILD.bazel", _BUILD)

_qemu_repo = repository_rule(
    implementation = _qemu_repo_impl,
    doc = "Emulators, each as an executable.",
    attrs = INSTALLER_ATTRS | {
        "_installer": attr.label(default = Label("//tools/qemu:install_qemu.py"), allow_single_file = True),
    },
)

def _qemu_impl(mctx):
    _qemu_repo(name = "qemu")
    return mctx.extension_metadata(reproducible = True)

qemu = module_extension(
    implementation = _qemu_impl,
    doc = "Makes `@qemu`.",
)
