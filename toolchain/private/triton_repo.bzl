"""A repository with the toolchain of Triton. The wheel is in another one, which is fetched when this toolchain is used."""

load(":host.bzl", "host_constraints")

_BUILD = """\
load("{site_packages_bzl}", "site_packages")
load("{torch_toolchain_bzl}", "triton_toolchain")

package(default_visibility = ["//visibility:public"])

exports_files(["requirements_lock.txt"])

site_packages(
    name = "site-packages",
    check_import = "triton",
    exclude = {exclude},
    exec_compatible_with = {constraints},
    python = "{python}",
    python_files = ["{python_files}"],
    wheels = ["@{wheels}//:wheels"],
)

triton_toolchain(
    name = "triton_toolchain",
    python_version = "{python_version}",
    site = ":site-packages",
    version = "{version}",
    worker_files = [
        "requirements_lock.txt",
        "{python_digest}",
        "{unpacker_files}",
    ],
)
"""

# A third of the wheel is for measurements and other tools that generate no code.
_UNUSED = [
    "triton/FileCheck/*",
    "triton/_C/libproton.so",
    "triton/backends/nvidia/bin/cuobjdump",
    "triton/backends/nvidia/bin/nvdisasm",
    "triton/backends/nvidia/include/*",
    "triton/backends/nvidia/lib/cupti/*",
    "triton/instrumentation/*",
    "triton/plugins/*",
    "triton/profiler/*",
]

def _triton_repo_impl(rctx):
    python = json.decode(rctx.read(rctx.attr.python))
    rctx.file("requirements_lock.txt", rctx.attr.lock, executable = False)
    rctx.file("BUILD.bazel", _BUILD.format(
        constraints = repr(host_constraints(rctx.os.name, rctx.os.arch)),
        exclude = repr(_UNUSED),
        python = rctx.attr.python.same_package_label("python"),
        python_digest = rctx.attr.python.same_package_label("python_files.txt"),
        python_files = rctx.attr.python.same_package_label("python_files"),
        python_version = python["version"],
        site_packages_bzl = Label("//toolchain/private:site_packages.bzl"),
        torch_toolchain_bzl = Label("//toolchain:torch_toolchain.bzl"),
        unpacker_files = Label("//toolchain:unpacker_files"),
        version = rctx.attr.version,
        wheels = rctx.attr.wheels,
    ))

triton_repo = repository_rule(
    implementation = _triton_repo_impl,
    doc = "The toolchain of Triton, and the part of a lock that pins it.",
    attrs = {
        "lock": attr.string(mandatory = True, doc = "The lock's text."),
        "python": attr.label(mandatory = True, allow_single_file = True, doc = "`python.json` of the interpreter's repository."),
        "version": attr.string(mandatory = True, doc = "The version that the lock pins."),
        "wheels": attr.string(mandatory = True, doc = "The repository with the wheel: a `site_repo` of this one's lock."),
    },
)
