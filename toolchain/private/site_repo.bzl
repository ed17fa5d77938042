"""A repository with the wheels of a hash-locked requirements file, which actions unpack."""

load(":host.bzl", "host_constraints")

_BUILD = """\
load("@rules_python//python:py_library.bzl", "py_library")
load("{site_packages_bzl}", "site_packages", "wheel_files")

package(default_visibility = ["//visibility:public"])

filegroup(
    name = "wheels",
    srcs = glob(["wheels/*.whl"], allow_empty = True),
)

# One directory artifact. Who unpacks it is an action, so that a build whose results are all cached does without.
site_packages(
    name = "site-packages",
    check_import = "{check_import}",
    exclude = {exclude},
    exec_compatible_with = {constraints},
    python = "{python}",
    python_files = ["{python_files}"],
    wheels = [":wheels"],
)

py_library(
    name = "packages",
    data = [":site-packages"],
    imports = ["site-packages"],
    deps = {deps},
)
"""

_TORCH_BUILD = """
load("@rules_cc//cc:defs.bzl", "cc_library")
load("{include_folders_bzl}", "include_folders")
load("{torch_toolchain_bzl}", "torch_runtime_toolchain", "torch_toolchain")

# torch's headers as far as generated code and its runtime include them: the C ABI, no C++ of libtorch.
cc_library(
    name = "torch_headers",
    hdrs = glob(["torch_headers/**/*.h"]),
    includes = ["torch_headers"],
    textual_hdrs = glob(["torch_headers/**/*.cpp"]),
)

# torch's stable C++, for operators of one's own.
cc_library(
    name = "stable_headers",
    hdrs = glob(["stable_headers/**/*.h"]),
    includes = ["stable_headers"],
    deps = [":torch_headers"],
)

# libtorch's C++ API, for operators on at::Tensor. Unpacked only for who asks for it.
site_packages(
    name = "cxx-headers-site",
    exclude = [
        "[!t]*",
        "t[!o]*",
        "torch-*",
        "torch/[!i]*",
        "torchgen/*",
    ],
    exec_compatible_with = {constraints},
    folder = "cxx_headers",
    python = "{python}",
    python_files = ["{python_files}"],
    wheels = [":wheels"],
)

include_folders(
    name = "cxx_headers",
    folder = ":cxx-headers-site",
    paths = [
        "torch/include",
        "torch/include/torch/csrc/api/include",
    ],
)

# The same as files.
filegroup(
    name = "header_files",
    srcs = glob(["torch_headers/**", "stable_headers/**"]),
)

# All in one folder, so that they find each other.
wheel_files(
    name = "libraries",
    exec_compatible_with = {constraints},
    folder = "lib",
    members = {libraries},
    python = "{python}",
    python_files = ["{python_files}"],
    wheels = [":wheels"],
)

# With the C++ headers, for who compiles against torch itself, such as `torch.compile`.
site_packages(
    name = "development-site-packages",
    exec_compatible_with = {constraints},
    folder = "development/site-packages",
    python = "{python}",
    python_files = ["{python_files}"],
    wheels = [":wheels"],
)

py_library(
    name = "development_packages",
    data = [":development-site-packages"],
    imports = ["development/site-packages"],
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
    python_files = ["{python_files}"],
    python_version = "{python_version}",
    site = ":site-packages",
    version = "{version}",

    # A worker keeps its packages in memory. Bazel starts another one when a tool's file changes, but
    # does not look into directories: these files tell what is in them.
    worker_files = [
        "installed.txt",
        "{python_digest}",
        "{unpacker_files}",
    ],
)

torch_runtime_toolchain(
    name = "torch_runtime_toolchain",
    cxx_headers = ":cxx_headers",
    libtorch = ":libtorch",
    pybind11 = ":pybind11",
    python_headers = ":python_headers",
    python_version = "{python_version}",
    stable_headers = ":stable_headers",
    torch_headers = ":torch_headers",
    version = "{version}",
)

# For other CPUs: torch's headers are the same text for all, its libraries and Python's headers aren't.
torch_runtime_toolchain(
    name = "torch_headers_toolchain",
    python_version = "{python_version}",
    stable_headers = ":stable_headers",
    torch_headers = ":torch_headers",
    version = "{version}",
)
"""

# The places where pip looks for wheels: a lock may allow more than one build, such as torch for CPU and for CUDA.
_PIP_VARIABLES = ["PIP_CONFIG_FILE", "PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS", "PIP_INDEX_URL", "PIP_NO_INDEX"]

_TIMEOUT_SECONDS = 3600

# Files that no action and no test reads: three of five files of torch are headers. Fewer files make sandboxes faster.
_UNUSED = [
    "mpmath/tests/*",
    "networkx/*/tests/*",
    "numpy/*/tests/*",
    "sympy/*/tests/*",
    "torch/bin/*StoreTest",
    "torch/bin/protoc*",
    "torch/bin/test_*",
    "torch/bin/upgrader_models/*",
    "torch/include/*",
    "torch/test/*",
]

# Only a warning: users with a CUDA build of torch need these, and most of a lock can be imported without them.
_CUDA_BUILDS = """\
@{name}: {lock}: {found} is a build for CUDA, as no CPU build was found that the lock has a hash of. It can't be imported \
beside a CPU build of torch. See "torchvision and torchaudio" in docs/toolchain.md of rules_aoti."""

def _watch(rctx, lock):
    """Has the repository fetched again when one of these changes."""
    for variable in _PIP_VARIABLES:
        rctx.getenv(variable)
    rctx.watch(lock)
    for helper in rctx.attr._helpers + [rctx.attr._fetch]:
        rctx.watch(rctx.path(helper))

def _fetch_wheels(rctx, python, lock):
    """Downloads the wheels. Returns the output of fetch_wheels.py, a dict."""
    rctx.report_progress("downloading {}".format(rctx.attr.requirements_lock))
    command = [python["executable"], "-B", rctx.attr._fetch, lock]
    if rctx.attr.torch_version:
        command.append("--torch")
    if rctx.attr.torch:
        command.append("--without-torch")
    result = rctx.execute(command, timeout = _TIMEOUT_SECONDS, quiet = True)
    if result.return_code:
        fail("@{}: {}: {}{}".format(rctx.name, rctx.attr.requirements_lock, result.stdout, result.stderr))
    return json.decode(result.stdout.strip().split("\n")[-1])

def _warn_of_cuda_builds(rctx, facts):
    if facts["cuda_builds"] and not facts.get("torch_version", "").partition("+")[2].startswith("cu"):
        # buildifier: disable=print
        print(_CUDA_BUILDS.format(
            found = " and ".join(facts["cuda_builds"]),
            lock = rctx.attr.requirements_lock,
            name = rctx.name,
        ))

def _checked_torch_version(rctx, facts):
    version = facts["torch_version"]
    if version.partition("+")[0] != rctx.attr.torch_version:
        fail("@{}: the lock {} installed torch {}, expected {}.".format(
            rctx.name,
            rctx.attr.requirements_lock,
            version,
            rctx.attr.torch_version,
        ))
    return version

def _build_file(rctx, python, facts):
    values = dict(
        check_import = "torch" if rctx.attr.torch_version else "",
        # The interpreter and the wheels are for this host.
        constraints = repr(host_constraints(rctx.os.name, rctx.os.arch)),
        deps = repr([rctx.attr.torch] if rctx.attr.torch else []),
        exclude = repr(_UNUSED if rctx.attr.torch_version else []),
        python = rctx.attr.python.same_package_label("python"),
        python_digest = rctx.attr.python.same_package_label("python_files.txt"),
        python_files = rctx.attr.python.same_package_label("python_files"),
        site_packages_bzl = Label("//toolchain/private:site_packages.bzl"),
    )
    build = _BUILD.format(**values)
    if not rctx.attr.torch_version:
        return build
    return build + _TORCH_BUILD.format(
        libraries = repr(facts["libraries"]),
        python_headers = rctx.attr.python.same_package_label("headers"),
        python_version = python["version"],
        include_folders_bzl = Label("//toolchain/private:include_folders.bzl"),
        torch_toolchain_bzl = Label("//toolchain:torch_toolchain.bzl"),
        unpacker_files = Label("//toolchain:unpacker_files"),
        version = _checked_torch_version(rctx, facts),
        **values
    )

def _site_repo_impl(rctx):
    lock = rctx.path(rctx.attr.requirements_lock)
    _watch(rctx, lock)
    if not rctx.os.name.startswith("linux"):
        fail("@{}: rules_aoti installs Python packages on Linux only, this is {}.".format(rctx.name, rctx.os.name))
    python = json.decode(rctx.read(rctx.attr.python))
    facts = _fetch_wheels(rctx, python, lock)
    _warn_of_cuda_builds(rctx, facts)
    rctx.file("installed.txt", "\n".join([rctx.read(lock)] + facts["wheels"]) + "\n")
    rctx.file("requirements_lock.txt", rctx.read(lock), executable = False)
    rctx.file("BUILD.bazel", _build_file(rctx, python, facts))

site_repo = repository_rule(
    implementation = _site_repo_impl,
    doc = "Packages from a lock; with `torch_version`, the torch toolchain made of them as well.",
    attrs = {
        "python": attr.label(mandatory = True, allow_single_file = True, doc = "`python.json` of the interpreter's repository."),
        "requirements_lock": attr.label(mandatory = True, allow_single_file = True, doc = "The lock."),
        "torch": attr.string(doc = "In place of the torch that the lock pins: a `py_library` with the same one."),
        "torch_version": attr.string(doc = "The torch that the lock pins; empty for a repository of packages alone."),
        "_fetch": attr.label(default = Label("//toolchain/private:fetch_wheels.py"), allow_single_file = True),
        "_helpers": attr.label_list(
            default = [
                Label("//toolchain/private:header_closure.py"),
                Label("//toolchain/private:header_patches.py"),
                Label("//toolchain/private:pip_runner.py"),
                Label("//toolchain/private:shared_libraries.py"),
                Label("//toolchain/private:torch_headers.py"),
                Label("//toolchain/private:wheels.py"),
            ],
            allow_files = True,
        ),
    },
)
