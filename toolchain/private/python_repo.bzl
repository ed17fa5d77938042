"""Finds the machine's Python of the wanted version and makes it usable: a copy of the interpreter, headers, rules_python runtime."""

_ENV = "RULES_AOTI_PYTHON"

_BUILD = """\
load("@rules_cc//cc:defs.bzl", "cc_library")
load("@rules_python//python:py_runtime.bzl", "py_runtime")
load("@rules_python//python:py_runtime_pair.bzl", "py_runtime_pair")

package(default_visibility = ["//visibility:public"])

exports_files(["bin/python3", "python.json"])

# The interpreter as a file, for actions. It finds its library beside itself, here and on a remote worker.
alias(
    name = "python",
    actual = "bin/python3",
)

# What it needs besides: one source directory, so that an action has one input more, not 1,200.
filegroup(
    name = "python_files",
    srcs = ["{library_folder}"],
)

cc_library(
    name = "headers",
    hdrs = glob(["include/**/*.h"]),
    includes = ["include"],
)

py_runtime(
    name = "runtime",
    interpreter_path = "{executable}",
    python_version = "PY3",
    stub_shebang = "#!{executable}",
)

py_runtime_pair(
    name = "runtime_pair",
    py3_runtime = ":runtime",
)
"""

def _candidates(rctx):
    forced = rctx.getenv(_ENV, "")
    if forced:
        return [forced]
    version = rctx.attr.python_version
    found = []
    for folder in [rctx.getenv("PATH", "")] + ["/usr/local/bin:/usr/bin"]:
        for name in ["python" + version, "python3", "python"]:
            for entry in folder.split(":"):
                path = entry + "/" + name
                if entry.startswith("/") and path not in found and rctx.path(path).exists:
                    found.append(path)
    return found

def _probe(rctx, path):
    """Returns (facts, None) or (None, why this interpreter can't be used)."""
    result = rctx.execute([path, "-E", rctx.attr._probe], timeout = 60, quiet = True)
    if result.return_code:
        lines = result.stderr.strip().split("\n")

        # Of a traceback the last line says why, of another text the first.
        why = lines[-1] if lines[0].startswith("Traceback") else lines[0]
        return None, "doesn't run: " + (why or "exit code {}".format(result.return_code))
    facts = json.decode(result.stdout)
    if facts["version"] != rctx.attr.python_version:
        return None, "is Python " + facts["version"]
    if facts["implementation"] != "cpython":
        return None, "is {}: torch's wheels are for CPython".format(facts["implementation"])
    missing = []
    if not facts["has_pip"]:
        missing.append("pip")
    if not facts["has_headers"]:
        missing.append("the C headers ({}/Python.h)".format(facts["include"]))
    if missing:
        return None, "is Python {} ({}) without {}".format(facts["version"], facts["executable"], " and ".join(missing))
    return facts, None

def _python_repo_impl(rctx):
    refused = []
    facts = None
    for path in _candidates(rctx):
        facts, why = _probe(rctx, path)
        if facts:
            break
        refused.append("  {}: {}".format(path, why))
    if not facts:
        version = rctx.attr.python_version
        fail("\n".join(
            ["No Python {} with pip and C headers was found, which the torch toolchain needs. Looked at:".format(version)] +
            (refused or ["  nothing: no python3 in PATH"]) +
            [
                "Install one (Debian, Ubuntu: apt install python{0} python{0}-dev python3-pip),".format(version),
                "or name it: --repo_env={}=/path/to/python{}".format(_ENV, version),
                "or ask for another version in MODULE.bazel: torch.toolchain(python = \"...\").",
            ],
        ))

    # An interpreter that was replaced under the same path is another one.
    rctx.watch(facts["base_executable"])
    for helper in rctx.attr._helpers + [rctx.attr._copy]:
        rctx.watch(rctx.path(helper))
    result = rctx.execute(
        [facts["base_executable"], "-S", "-s", "-B", rctx.attr._copy],
        environment = {"PYTHONHASHSEED": "0"},
        quiet = True,
    )
    if result.return_code:
        fail("@{}: {} could not be copied:\n{}{}".format(rctx.name, facts["base_executable"], result.stdout, result.stderr))
    rctx.symlink(facts["include"], "include")
    rctx.file("python.json", json.encode_indent(facts) + "\n")
    rctx.file("BUILD.bazel", _BUILD.format(
        executable = facts["base_executable"],
        library_folder = facts["library_folder"],
    ))

python_repo = repository_rule(
    implementation = _python_repo_impl,
    doc = "The machine's Python of one version, copied.",
    attrs = {
        "python_version": attr.string(mandatory = True, doc = "Such as `3.11`."),
        "_copy": attr.label(default = Label("//toolchain/private:copy_python.py"), allow_single_file = True),
        "_helpers": attr.label_list(
            default = [
                Label("//toolchain/private:bytecode.py"),
                Label("//toolchain/private:shared_libraries.py"),
            ],
            allow_files = True,
        ),
        "_probe": attr.label(default = Label("//toolchain/private:probe_python.py"), allow_single_file = True),
    },
    configure = True,
)
