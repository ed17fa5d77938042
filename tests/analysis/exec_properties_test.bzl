"""Exec groups: which rule has which, and what aoti_model makes of `exec_properties`."""

load("@bazel_skylib//lib:unittest.bzl", "analysistest", "asserts", "unittest")
load("//rules:defs.bzl", "aoti_library", "torch_export", "torch_import")
load("//rules/private:exec_properties.bzl", "exec_properties_error", "properties_of_groups")  # buildifier: disable=bzl-visibility
load(":fake_toolchains.bzl", "FAKE_TOOLCHAINS")

def _parts_impl(ctx):
    env = unittest.begin(ctx)
    properties = {"Arch": "x86", "codegen.Pool": "small", "export.Pool": "large", "test.Pool": "fast"}
    asserts.equals(
        env,
        {"Arch": "x86", "export.Pool": "large"},
        properties_of_groups(properties, ["export", "package"]),
    )
    asserts.equals(env, {"Arch": "x86"}, properties_of_groups(properties, []))
    return unittest.end(env)

_parts_test = unittest.make(_parts_impl)

def _errors_impl(ctx):
    env = unittest.begin(ctx)
    asserts.equals(env, None, exec_properties_error({}))
    asserts.equals(env, None, exec_properties_error({"Pool": "a", "export.Pool": "b", "test.Pool": "c"}))
    asserts.equals(
        env,
        "exec_properties has \"exprot.Pool\", but there is no exec group `exprot`. Known: export, codegen, package, test; " +
        "a key without a dot goes to all",
        exec_properties_error({"exprot.Pool": "large"}),
    )
    asserts.true(env, "can't be divided among targets" in exec_properties_error(select({"//conditions:default": {}})))
    return unittest.end(env)

_errors_test = unittest.make(_errors_impl)

def _accepted_impl(ctx):
    # Bazel refuses properties of a group that the rule hasn't.
    env = analysistest.begin(ctx)
    asserts.true(env, analysistest.target_actions(env))
    return analysistest.end(env)

_accepted_test = analysistest.make(_accepted_impl, config_settings = FAKE_TOOLCHAINS)

# What makes a target of each rule, and the groups that it has.
_RULES = {
    "export": (torch_export, dict(entry_point = "tiny:build", inputs = {"x": "float32[3]"}, module = ":tiny_py"), ["export", "package"]),
    "import": (torch_import, dict(program = ":frozen_file.pt2"), ["export", "package"]),
    "library": (aoti_library, dict(program = ":tiny.program"), ["codegen", "package"]),
}

def exec_properties_test_suite(name):
    """All tests of this file.

    Args:
        name: the suite's name.
    """
    _parts_test(name = name + "_parts")
    _errors_test(name = name + "_errors")
    tests = [name + "_parts", name + "_errors"]
    for kind, (rule, attributes, groups) in _RULES.items():
        rule(
            name = "pool_" + kind,
            exec_properties = {group + ".Pool": group for group in groups},
            tags = ["manual"],
            **attributes
        )
        _accepted_test(name = "{}_{}".format(name, kind), target_under_test = ":pool_" + kind)
        tests.append("{}_{}".format(name, kind))
    native.test_suite(name = name, tests = tests)
