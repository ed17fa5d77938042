"""llama.cpp with its Python bindings, built from source: the index has no wheel of it.

Only `bazel run //benchmarks:runtime` fetches it. Where it can't be built the repository is empty, and
the benchmark says that llama.cpp is missing.
"""

_VERSION = "0.3.36"
_SHA256 = "832db0699007f1be95a7e41ef12e88926b02ba836461e36a36372db2760c1a2e"

_BUILD = """\
load("@rules_python//python:py_library.bzl", "py_library")

py_library(
    name = "packages",
    data = ["site-packages"],
    imports = ["site-packages"],
    visibility = ["//visibility:public"],
)
"""

# For the CPU that it is built on, as llama.cpp does by default, and without what is not measured.
_OPTIONS = [
    "-DLLAMA_BUILD_EXAMPLES=OFF",
    "-DLLAMA_BUILD_TESTS=OFF",
    "-DLLAMA_BUILD_TOOLS=OFF",
    "-DLLAMA_CURL=OFF",
    "-DLLAVA_BUILD=OFF",
]

_TIMEOUT_SECONDS = 7200

def _llama_cpp_repo_impl(rctx):
    python = json.decode(rctx.read(rctx.attr._python))["executable"]
    rctx.file("requirements.txt", "llama-cpp-python=={} --hash=sha256:{}\n".format(_VERSION, _SHA256))
    rctx.report_progress("building llama.cpp, which takes some minutes")
    result = rctx.execute(
        [python, "-m", "pip", "--disable-pip-version-check", "install", "--no-deps", "--target", "site-packages"] +
        ["--no-binary", "llama-cpp-python", "--require-hashes", "--requirement", "requirements.txt"],
        environment = {"CMAKE_ARGS": " ".join(_OPTIONS)},
        quiet = True,
        timeout = _TIMEOUT_SECONDS,
    )
    if result.return_code:
        # buildifier: disable=print
        print("llama.cpp is left out of the benchmark: pip can't build it: " + result.stderr[-2000:])
        rctx.delete("site-packages")
        rctx.file("site-packages/README", "llama-cpp-python could not be built.\n")
    rctx.file("BUILD.bazel", _BUILD)

_llama_cpp_repo = repository_rule(
    implementation = _llama_cpp_repo_impl,
    doc = "llama-cpp-python, built by pip.",
    attrs = {
        "_python": attr.label(default = Label("@torch_python//:python.json"), allow_single_file = True),
    },
)

def _llama_cpp_impl(_mctx):
    _llama_cpp_repo(name = "llama_cpp_python")

llama_cpp = module_extension(
    implementation = _llama_cpp_impl,
    doc = "Makes @llama_cpp_python.",
)
