"""A repository with a hash-locked requirements file, installed by the machine's pip."""

# The folder is *one* source directory artifact: an action that uses torch has one input more, not 12,000.
_BUILD = """\
load("@rules_python//python:py_library.bzl", "py_library")

package(default_visibility = ["//visibility:public"])

exports_files(["site-packages"])

py_library(
    name = "packages",
    data = ["site-packages"],
    imports = ["site-packages"],
    deps = {deps},
)
"""

_TORCH_BUILD = """
load("@rules_cc//cc:defs.bzl", "cc_library")
load("{torch_toolchain_bzl}", "torch_runtime_toolchain", "torch_toolchain")

# torch's headers as far as generated code and its runtime include them: the C ABI, no C++ of libtorch.
cc_library(
    name = "torch_headers",
    hdrs = glob(["torch_headers/**"]),
    includes = ["torch_headers"],
)

# All in one folder, so that they find each other.
filegroup(
    name = "libraries",
    srcs = glob(["lib/*.so*"]),
)

cc_library(
    name = "libtorch",
    srcs = [":libraries"],
    deps = [":torch_headers"],
)

cc_library(
    name = "pybind11",
    hdrs = glob(["pybind11_headers/**"], allow_empty = True),
    includes = ["pybind11_headers"],
    deps = ["{python_headers}"],
)

alias(
    name = "python_headers",
    actual = "{python_headers}",
)

alias(
    name = "python",
    actual = "{python}",
)

torch_toolchain(
    name = "torch_toolchain",
    lock = "requirements_lock.txt",
    python = ":python",
    # A worker keeps its packages in memory. Bazel starts another one when a tool's file changes, but
    # does not look into the directory.
    python_files = ["installed.txt"],
    python_version = "{python_version}",
    site = ":site-packages",
    version = "{version}",
)

torch_runtime_toolchain(
    name = "torch_runtime_toolchain",
    libtorch = ":libtorch",
    pybind11 = ":pybind11",
    python_headers = ":python_headers",
    python_version = "{python_version}",
    torch_headers = ":torch_headers",
    version = "{version}",
)

# For other CPUs: torch's headers are the same text for all, its libraries and Python's headers aren't.
torch_runtime_toolchain(
    name = "torch_headers_toolchain",
    python_version = "{python_version}",
    torch_headers = ":torch_headers",
    version = "{version}",
)
"""

# Where pip looks for wheels: the lock may allow more than one, such as torch for CPU and for CUDA.
_PIP_VARIABLES = ["PIP_CONFIG_FILE", "PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS", "PIP_INDEX_URL", "PIP_NO_INDEX"]

_TIMEOUT_SECONDS = 3600

def _site_repo_impl(rctx):
    for variable in _PIP_VARIABLES:
        rctx.getenv(variable)
    facts = json.decode(rctx.read(rctx.attr.python))
    lock = rctx.path(rctx.attr.requirements_lock)
    rctx.watch(lock)
    for helper in rctx.attr._helpers + [rctx.attr._installer]:
        rctx.watch(rctx.path(helper))
    if not rctx.os.name.startswith("linux"):
        fail("@{}: rules_aoti installs Python packages on Linux only, this is {}.".format(rctx.name, rctx.os.name))

    rctx.report_progress("installing {}".format(rctx.attr.requirements_lock))
    command = [facts["executable"], "-B", rctx.attr._installer, lock]
    if rctx.attr.torch_version:
        command.append("--torch")
    if rctx.attr.torch:
        command.append("--without-torch")
    result = rctx.execute(command, environment = {"PYTHONHASHSEED": "0"}, timeout = _TIMEOUT_SECONDS, quiet = True)
    if result.return_code:
        fail("@{}: {}: {}{}".format(rctx.name, rctx.attr.requirements_lock, result.stdout, result.stderr))

    build = _BUILD.format(deps = repr([rctx.attr.torch] if rctx.attr.torch else []))
    rctx.file("installed.txt", rctx.read(lock) + result.stdout)
    rctx.file("requirements_lock.txt", rctx.read(lock), executable = False)
    if rctx.attr.torch_version:
        version = result.stdout.strip().split("\n")[-1]
        if version.partition("+")[0] != rctx.attr.torch_version:
            fail("@{}: the lock {} installed torch {}, expected {}.".format(
                rctx.name,
                rctx.attr.requirements_lock,
                version,
                rctx.attr.torch_version,
            ))
        build += _TORCH_BUILD.format(
            python = rctx.attr.python.same_package_label("bin/python3"),
            python_headers = rctx.attr.python.same_package_label("headers"),
            python_version = facts["version"],
            torch_toolchain_bzl = Label("//toolchain:torch_toolchain.bzl"),
            version = version,
        )
    rctx.file("BUILD.bazel", build)

site_repo = repository_rule(
    implementation = _site_repo_impl,
    doc = "Packages from a lock; with `torch_version`, the torch toolchain made of them as well.",
    attrs = {
        "python": attr.label(mandatory = True, allow_single_file = True, doc = "`python.json` of the interpreter's repository."),
        "requirements_lock": attr.label(mandatory = True, allow_single_file = True, doc = "The lock."),
        "torch": attr.string(doc = "In place of the torch that the lock pins: a `py_library` with the same one."),
        "torch_version": attr.string(doc = "The torch that the lock pins; empty for a repository of packages alone."),
        "_helpers": attr.label_list(
            default = [
                Label("//toolchain/private:header_closure.py"),
                Label("//toolchain/private:header_patches.py"),
                Label("//toolchain/private:pip_runner.py"),
                Label("//toolchain/private:shared_libraries.py"),
            ],
            allow_files = True,
        ),
        "_installer": attr.label(default = Label("//toolchain/private:install_site.py"), allow_single_file = True),
    },
)
