"""rules_python's toolchain for its own steps: made where rules_python has the type, and not elsewhere."""

load("@bazel_skylib//lib:unittest.bzl", "asserts", "unittest")
load(
    "//toolchain/private:exec_tools.bzl",
    "exec_tools_load",
    "exec_tools_target",
    "exec_tools_toolchain",
    "has_exec_tools",
)  # buildifier: disable=bzl-visibility

def _fake_context(files, watched):
    """Stands for a repository rule's context beside a rules_python with these files in its folder `python`."""

    def child(name):
        return struct(name = name, exists = name in files)

    return struct(
        path = lambda label: struct(dirname = struct(get_child = child)),
        watch = lambda path: watched.append(path.name),
    )

def _exec_tools_test_impl(ctx):
    env = unittest.begin(ctx)
    watched = []
    asserts.false(env, has_exec_tools(_fake_context(["defs.bzl"], watched)))
    asserts.true(env, has_exec_tools(_fake_context(["defs.bzl", "py_exec_tools_toolchain.bzl"], watched)))
    asserts.equals(env, ["py_exec_tools_toolchain.bzl"] * 2, watched, "another rules_python is noticed")

    toolchain = exec_tools_toolchain("my_python", ["@platforms//os:linux"])
    for part in [
        "exec_compatible_with = [\"@platforms//os:linux\"],",
        "toolchain = \"@my_python//:exec_tools\",",
        "//python:exec_tools_toolchain_type\",",
    ]:
        asserts.true(env, part in toolchain, "{} not in {}".format(part, toolchain))
    asserts.true(env, "\"py_exec_tools_toolchain\"" in exec_tools_load())
    asserts.true(env, "//tools/precompiler:precompiler\"" in exec_tools_target())
    return unittest.end(env)

exec_tools_test = unittest.make(_exec_tools_test_impl)

def exec_tools_test_suite(name):
    """All tests of this file.

    Args:
      name: the suite's name.
    """
    unittest.suite(name, exec_tools_test)
