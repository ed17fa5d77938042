"""Finds a Python of the wanted version on the machine, and provides a copy of the interpreter, headers and a rules_python
runtime.
"""

load(":exec_tools.bzl", "exec_tools_load", "exec_tools_target", "has_exec_tools")
load(":python_choice.bzl", "candidates", "choose", "no_python_found")

_ENV = "RULES_AOTI_PYTHON"

_BUILD = """\
load("@rules_cc//cc:defs.bzl", "cc_library")
load("@rules_python//python:py_runtime.bzl", "py_runtime")
load("@rules_python//python:py_runtime_pair.bzl", "py_runtime_pair")
{exec_tools_load}
package(default_visibility = ["//visibility:public"])

exports_files(["bin/python3", "python.json", "python_files.txt"])

# The interpreter as a file, for actions. It finds its library beside itself, here and on a remote worker.
alias(
    name = "python",
    actual = "bin/python3",
)

# Its library: one source directory, so that an action has a single input for it and not 1,200. Bazel may not notice changes
# in a directory; `python_files.txt` changes whenever something in it does.
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
    interpreter_path = "{executable}",{version_info}
    python_version = "PY3",
    stub_shebang = "#!{executable}",
)

py_runtime_pair(
    name = "runtime_pair",
    py3_runtime = ":runtime",
)
{exec_tools}"""

# Releases of rules_python without exec tools do not know this attribute.
_VERSION_INFO = """
    interpreter_version_info = {{
        "major": "{major}",
        "micro": "{micro}",
        "minor": "{minor}",
    }},"""

def _candidates(rctx):
    forced = rctx.getenv(_ENV, "")
    if forced:
        return [forced]
    if rctx.attr.interpreter:
        return [str(rctx.path(rctx.attr.interpreter))]
    folders = rctx.getenv("PATH", "").split(":") + ["/usr/local/bin", "/usr/bin"]
    return candidates(folders, rctx.attr.python_versions, lambda path: rctx.path(path).exists)

def _probe(rctx, path):
    """Returns (facts, None) or (None, why this interpreter can't be used)."""
    result = rctx.execute([path, "-E", rctx.attr._probe], timeout = 60, quiet = True)
    if result.return_code:
        lines = result.stderr.strip().split("\n")

        # The last line of a traceback says why; in other output it is the first line.
        why = lines[-1] if lines[0].startswith("Traceback") else lines[0]
        return None, "doesn't run: " + (why or "exit code {}".format(result.return_code))
    facts = json.decode(result.stdout)
    if facts["version"] not in rctx.attr.python_versions:
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
    versions = rctx.attr.python_versions
    facts, refused = choose(_candidates(rctx), versions, lambda path: _probe(rctx, path))
    if not facts:
        fail(no_python_found(versions, refused, _ENV))

    # Another interpreter at the same path is noticed.
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
    exec_tools = has_exec_tools(rctx)
    major, minor, micro = facts["full_version"].split(".")
    rctx.file("BUILD.bazel", _BUILD.format(
        exec_tools = exec_tools_target() if exec_tools else "",
        exec_tools_load = exec_tools_load() if exec_tools else "",
        executable = facts["base_executable"],
        library_folder = facts["library_folder"],
        version_info = _VERSION_INFO.format(major = major, micro = micro, minor = minor) if exec_tools else "",
    ))

python_repo = repository_rule(
    implementation = _python_repo_impl,
    doc = "A Python of the machine, or another one that is named, copied.",
    attrs = {
        "interpreter": attr.label(doc = "The interpreter, in place of the machine's."),
        "python_versions": attr.string_list(mandatory = True, doc = "The versions that will do, such as `3.11`, the newest first."),
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
