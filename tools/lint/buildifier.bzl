"""The repository @buildifier: the prebuilt program from npm, through the machine's own npm."""

_VERSION = "8.2.1"
_SHA256 = "b96ea9b13003036c801f52bee6f9b0314738f8432e5cb9d814c89f59292604ee"
_RETRIES = 3
_ARCHS = {"aarch64": "arm64", "amd64": "amd64", "arm64": "arm64", "x86_64": "amd64"}

_BUILD = """\
package(default_visibility = ["//visibility:public"])

exports_files([
    "buildifier",
    "buildifier_or_empty",
])
"""

# Without npm there is no buildifier: what needs it is skipped, and Bazel says so. What can do without it
# takes :buildifier_or_empty, which is an empty file then.
_BUILD_WITHOUT = """\
exports_files(
    ["buildifier_or_empty"],
    visibility = ["//visibility:public"],
)

filegroup(
    name = "buildifier",
    target_compatible_with = ["@platforms//:incompatible"],
    visibility = ["//visibility:public"],
)
"""

def _buildifier_repo_impl(rctx):
    npm = rctx.which("npm")
    if not npm:
        rctx.file("BUILD.bazel", _BUILD_WITHOUT)
        rctx.file("buildifier_or_empty")
        return
    os = "darwin" if rctx.os.name.startswith("mac") else rctx.os.name
    if rctx.os.arch not in _ARCHS:
        fail("@buildifier: npm has no buildifier for {}".format(rctx.os.arch))
    command = [npm, "pack", "--silent", "@bazel/buildifier@" + _VERSION]
    rctx.file("npm/package.json", "{}")  # npm works where the next package.json is
    result = rctx.execute(command, working_directory = "npm")
    for _ in range(_RETRIES):
        if result.return_code == 0:
            break
        result = rctx.execute(command, working_directory = "npm")
    if result.return_code != 0:
        fail("@buildifier: npm pack failed: {}".format(result.stderr))
    packed = rctx.path("npm/" + result.stdout.strip().split("\n")[-1])
    rctx.download("file://" + str(packed), output = "buildifier.tgz", sha256 = _SHA256)
    rctx.extract("buildifier.tgz", output = "unpacked")
    program = "unpacked/package/buildifier-{}_{}".format(os, _ARCHS[rctx.os.arch])
    if not rctx.path(program).exists:
        fail("@buildifier: npm's package has no {}".format(program))
    rctx.symlink(program, "buildifier")
    rctx.symlink(program, "buildifier_or_empty")
    rctx.file("BUILD.bazel", _BUILD)

_buildifier_repo = repository_rule(
    implementation = _buildifier_repo_impl,
    doc = "Fetches buildifier {} from npm, checked against its hash.".format(_VERSION),
)

def _lint_tools_impl(mctx):
    _buildifier_repo(name = "buildifier")
    return mctx.extension_metadata(reproducible = True)

lint_tools = module_extension(
    implementation = _lint_tools_impl,
    doc = "Programs that only the checks of rules_aoti's own sources need.",
)
