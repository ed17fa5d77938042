"""The choice of a Python on machines that have several, or none that is suitable."""

load("@bazel_skylib//lib:unittest.bzl", "asserts", "unittest")
load("//toolchain/private:python_choice.bzl", "candidates", "choose", "no_python_found")  # buildifier: disable=bzl-visibility
load("//toolchain/private:versions.bzl", "python_versions")  # buildifier: disable=bzl-visibility

_VERSIONS = ["3.14", "3.13", "3.12", "3.11", "3.10"]

# A machine: path -> its version, or why it can't be used.
_MACHINE = {
    "/opt/bin/python3": "3.15",
    "/usr/bin/python3": "3.11",
    "/usr/bin/python3.11": "3.11",
    "/usr/bin/python3.12": "3.12",
    "/usr/bin/python3.13": "is Python 3.13 (/usr/bin/python3.13) without pip",
    "/usr/bin/python3.9": "3.9",
    "/usr/local/bin/python3": "3.12",
}

def _probe(path):
    answer = _MACHINE[path]
    return (None, answer) if answer.startswith("is") else ({"path": path, "version": answer}, None)

def _find(path, versions, machine = _MACHINE):
    return choose(candidates(path.split(":"), versions, lambda file: file in machine), versions, _probe)

def _newest_test_impl(ctx):
    env = unittest.begin(ctx)
    asserts.equals(env, _VERSIONS, python_versions("2.13.0"), "the newest first")
    facts, refused = _find("/opt/bin:relative:/usr/bin:/usr/local/bin", _VERSIONS)
    asserts.equals(env, "/usr/bin/python3.12", facts["path"], "the newest that can be used, the first of its kind")
    asserts.equals(env, [
        "  /opt/bin/python3: is Python 3.15",
        "  /usr/bin/python3.13: is Python 3.13 (/usr/bin/python3.13) without pip",
    ], refused)
    asserts.equals(env, "/usr/bin/python3.11", _find("/usr/bin", ["3.11"])[0]["path"], "one that is asked for")
    return unittest.end(env)

newest_test = unittest.make(_newest_test_impl)

def _none_test_impl(ctx):
    env = unittest.begin(ctx)
    facts, refused = _find("/opt/bin", _VERSIONS)
    asserts.equals(env, None, facts)
    asserts.equals(
        env,
        "\n".join([
            "No Python 3.10 to 3.14 with pip and C headers was found, which the torch toolchain needs. Looked at:",
            "  /opt/bin/python3: is Python 3.15",
            "Install one (Debian, Ubuntu: apt install python3 python3-dev python3-pip; or python3.14 python3.14-dev),",
            "or name it: --repo_env=VARIABLE=/path/to/python3,",
            "or take one of rules_python in MODULE.bazel: torch.toolchain(interpreter = \"@python_3_14_host//:python\"),",
            "or ask for another version there: torch.toolchain(python = \"...\").",
        ]),
        no_python_found(_VERSIONS, refused, "VARIABLE"),
    )
    asserts.true(env, no_python_found(["3.12"], [], "V").startswith("No Python 3.12 with pip"))
    asserts.true(env, "nothing: no python3 in PATH" in no_python_found(["3.12"], [], "V"))
    return unittest.end(env)

none_test = unittest.make(_none_test_impl)

def python_choice_test_suite(name):
    """All tests of this file.

    Args:
      name: the suite's name.
    """
    unittest.suite(name, newest_test, none_test)
