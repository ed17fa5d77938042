"""The module extension `prebuilt_runtime`: what archives.bzl names, a repository for each CPU.

A repository is fetched when a program for its CPU is linked, and never with
`--@rules_aoti//runtime:from_source`.
"""

load(":archives.bzl", "ARCHIVES")
load(":cpus.bzl", "CPUS")

_BUILD = """\
exports_files(
    glob(["*.a"]),
    visibility = ["{visibility}"],
)
"""

def _prebuilt_repo_impl(rctx):
    if not rctx.attr.url:
        fail("this release of rules_aoti has no compiled runtime for {}: build with --@rules_aoti//runtime:from_source".format(rctx.attr.cpu))
    rctx.download_and_extract(rctx.attr.url, integrity = rctx.attr.integrity)
    rctx.file("BUILD.bazel", _BUILD.format(visibility = str(Label("//runtime:__subpackages__"))))

_prebuilt_repo = repository_rule(
    implementation = _prebuilt_repo_impl,
    doc = "The runtime's libraries, compiled for a CPU.",
    attrs = {
        "cpu": attr.string(mandatory = True),
        "integrity": attr.string(doc = "As in a registry: `sha256-` and a digest in base64."),
        "url": attr.string(doc = "Where the archive is; empty if there is none for the CPU."),
    },
)

def _prebuilt_runtime_impl(mctx):
    for cpu in CPUS:
        archive = ARCHIVES.get(cpu, {})
        _prebuilt_repo(
            name = "prebuilt_runtime_" + cpu,
            cpu = cpu,
            integrity = archive.get("integrity", ""),
            url = archive.get("url", ""),
        )
    return mctx.extension_metadata(reproducible = True)

prebuilt_runtime = module_extension(
    implementation = _prebuilt_runtime_impl,
    doc = "Makes the repositories of the compiled runtimes. It has no tags.",
)
