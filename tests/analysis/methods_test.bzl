"""Models of several methods: names, arguments, and what aoti_methods_library declares."""

load("@bazel_skylib//lib:unittest.bzl", "analysistest", "asserts", "unittest")
load("@rules_python//python:py_info.bzl", "PyInfo")
load("//rules:defs.bzl", "aoti_method", "aoti_methods_library", "aoti_model")
load("//rules:providers.bzl", "AotiMethodsInfo")
load("//rules/private:aoti_method.bzl", "methods_arguments_error")  # buildifier: disable=bzl-visibility
load("//rules/private:methods.bzl", "methods_error")  # buildifier: disable=bzl-visibility
load(":fake_toolchains.bzl", "FAKE_TOOLCHAINS")

def _names_impl(ctx):
    env = unittest.begin(ctx)
    asserts.equals(env, None, methods_error(["encode", "decode_step", "step2", "double"]))
    for name in ["Encode", "_encode", "encode_", "en__code", "en-code", "en.code", "2nd", ""]:
        error = methods_error(["encode", name])
        asserts.true(env, error and error.startswith('methods: "{}" can\'t name a function in C++ and Python'.format(name)), name)
    asserts.equals(
        env,
        'methods: "yield" is a keyword of Python; choose another name (what it runs is said by `method`)',
        methods_error(["yield"]),
    )
    for name in ["swap_weights", "manual_seed", "session", "with_options"]:
        asserts.equals(
            env,
            'methods: "{}" is a function that every generated class has; choose another name (what it runs is said by `method`)'.format(name),
            methods_error(["encode", name]),
        )
    asserts.equals(
        env,
        'methods: "list" is a name that the stub of the Python module uses; choose another name (what it runs is said by `method`)',
        methods_error(["list"]),
    )
    asserts.true(env, methods_error(["load"]).startswith('methods: "load" is a function that every generated class has'))
    return unittest.end(env)

_names_test = unittest.make(_names_impl)

def _arguments_impl(ctx):
    env = unittest.begin(ctx)
    methods = {"encode": aoti_method(inputs = {"x": "float32[3]"})}
    asserts.equals(env, None, methods_arguments_error(methods, {"inputs": {}, "method": ""}))
    asserts.equals(
        env,
        "inputs together with methods: each method has its own, methods = {\"encode\": aoti_method(inputs = ...)}",
        methods_arguments_error(methods, {"inputs": {"x": "float32[3]"}}),
    )
    asserts.equals(
        env,
        'methods["decode"] is a dict, expected aoti_method(inputs = ...)',
        methods_arguments_error({"decode": {"inputs": {}}}, {}),
    )
    return unittest.end(env)

_arguments_test = unittest.make(_arguments_impl)

def _basenames(files):
    return sorted([file.basename for file in files])

def _library_impl(ctx):
    env = analysistest.begin(ctx)
    target = analysistest.target_under_test(env)
    info = target[AotiMethodsInfo]
    asserts.equals(env, ["first", "second"], info.methods.keys())
    asserts.equals(env, "TwoMethods", info.cc_class)

    # One weights file, and not those of the methods beside it.
    runfiles = [name for name in _basenames(target[DefaultInfo].default_runfiles.files.to_list()) if name.endswith(".safetensors")]
    asserts.equals(env, ["two_methods.safetensors"], runfiles)

    # New weights compile nothing, and the methods' code is their own libraries'.
    actions = analysistest.target_actions(env)
    merged = [library.weights for library in info.methods.values()] + [info.weights]
    readers = [a.mnemonic for a in actions if [f for f in a.inputs.to_list() if f in merged]]
    asserts.equals(env, ["AotiMergeWeights"], readers)
    asserts.equals(env, [], [a.mnemonic for a in actions if a.mnemonic in ["AotiCodegen", "TorchExport"]])
    asserts.equals(
        env,
        [["two_methods.binding.cc"], ["two_methods.digest.cc"], ["two_methods.python.cc"]],
        [[f.basename for f in a.inputs.to_list() if f.extension == "cc"] for a in actions if a.mnemonic == "CppCompile"],
    )
    return analysistest.end(env)

def _python_impl(ctx):
    env = analysistest.begin(ctx)
    target = analysistest.target_under_test(env)
    without = target.label.name == "two_methods_without_python"
    name = target.label.name
    asserts.equals(env, name + ".so", target[AotiMethodsInfo].python_module.basename)
    files = _basenames(target[PyInfo].transitive_sources.to_list())
    refusals = [a for a in analysistest.target_actions(env) if a.mnemonic == "AotiUnavailable"]
    if without:
        asserts.equals(env, [name + ".so"], files)
        asserts.true(env, "no Python module, because the target has python = False" in " ".join(refusals[0].argv))
    else:
        asserts.true(env, name + ".so" in files and name + ".pyi" in files)
        asserts.equals(env, [], refusals)
    return analysistest.end(env)

_python_test = analysistest.make(_python_impl, config_settings = FAKE_TOOLCHAINS)

_library_test = analysistest.make(_library_impl, config_settings = FAKE_TOOLCHAINS)

def _failure_impl(ctx):
    env = analysistest.begin(ctx)
    asserts.expect_failure(env, ctx.attr.phrase)
    return analysistest.end(env)

_failure_test = analysistest.make(
    _failure_impl,
    attrs = {"phrase": attr.string(mandatory = True)},
    config_settings = FAKE_TOOLCHAINS,
    expect_failure = True,
)

def methods_test_suite(name):
    """All tests of this file.

    Args:
        name: the suite's name.
    """
    aoti_model(
        name = "two_methods",
        entry_point = "tiny:build",
        methods = {
            "first": aoti_method(inputs = {"x": "float32[3]"}),
            "second": aoti_method(
                inputs = {"x": "float32[4]"},
                method = "part.step",
            ),
        },
        module = ":tiny_py",
        ops_lock = "two_methods.ops.txt",
        tags = ["manual"],
    )
    aoti_model(
        name = "two_methods_without_python",
        entry_point = "tiny:build",
        methods = {"first": aoti_method(inputs = {"x": "float32[3]"})},
        module = ":tiny_py",
        python = False,
        tags = ["manual"],
    )
    aoti_methods_library(
        name = "keyword_method",
        methods = {"pass": ":tiny"},
        tags = ["manual"],
    )
    aoti_methods_library(
        name = "reserved_method",
        methods = {"swap_weights": ":tiny"},
        tags = ["manual"],
    )
    aoti_methods_library(
        name = "no-class-name",
        methods = {"first": ":tiny"},
        tags = ["manual"],
    )
    _names_test(name = name + "_names")
    _arguments_test(name = name + "_arguments")
    _library_test(name = name + "_library", target_under_test = ":two_methods")
    _python_test(name = name + "_python", target_under_test = ":two_methods")
    _python_test(name = name + "_without_python", target_under_test = ":two_methods_without_python")
    _failure_test(
        name = name + "_reserved",
        phrase = '//tests/analysis:reserved_method: methods: "swap_weights" is a function that every generated class has',
        target_under_test = ":reserved_method",
    )
    _failure_test(
        name = name + "_keyword",
        phrase = '//tests/analysis:keyword_method: methods: "pass" is a keyword of Python',
        target_under_test = ":keyword_method",
    )
    _failure_test(
        name = name + "_class_name",
        phrase = '//tests/analysis:no-class-name: the name "no-class-name" can\'t name a C++ class',
        target_under_test = ":no-class-name",
    )
    native.test_suite(
        name = name,
        tests = [name + suffix for suffix in ["_names", "_arguments", "_library", "_python", "_without_python", "_reserved", "_keyword", "_class_name"]],
    )
