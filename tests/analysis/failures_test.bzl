"""Targets that must not pass analysis, and what they say."""

load("@bazel_skylib//lib:unittest.bzl", "analysistest", "asserts")
load("//rules:defs.bzl", "aoti_library", "torch_export")
load(":fake_toolchains.bzl", "FAKE_TOOLCHAINS")

def _failure_impl(ctx):
    env = analysistest.begin(ctx)
    for phrase in ctx.attr.phrases:
        asserts.expect_failure(env, phrase)
    return analysistest.end(env)

_failure_test = analysistest.make(
    _failure_impl,
    attrs = {"phrases": attr.string_list(mandatory = True)},
    config_settings = FAKE_TOOLCHAINS,
    expect_failure = True,
)

def failures_test_suite(name):
    """All tests of this file.

    Args:
        name: the suite's name.
    """
    aoti_library(
        name = "unknown_isa",
        isa = "sse9",
        program = ":tiny.program",
        tags = ["manual"],
    )
    aoti_library(
        name = "foreign_isa",
        isa = "aarch64",
        program = ":tiny.program",
        tags = ["manual"],
        target_compatible_with = ["@platforms//cpu:x86_64"],
    )
    aoti_library(
        name = "unknown_shim",
        program = ":tiny.program",
        shim = "shimmy",
        tags = ["manual"],
    )
    aoti_library(
        name = "no_threads",
        program = ":tiny.program",
        tags = ["manual"],
        threads = -1,
    )
    aoti_library(
        name = "not-a-name",
        program = ":tiny.program",
        tags = ["manual"],
    )
    torch_export(
        name = "no_inputs",
        entry_point = "tiny:build",
        module = ":tiny_py",
        tags = ["manual"],
    )
    expected = {
        "foreign_isa": ['isa = "aarch64" is one of aarch64, but the target platform is x86_64'],
        "no_inputs": ["//tests/analysis:no_inputs: give `inputs`", "or `sample_inputs`"],
        "no_threads": ["//tests/analysis:no_threads: threads = -1: give the number of threads of a call, or 0"],
        "not-a-name": ["can't name a Python module or a C++ class"],
        "unknown_isa": [
            '//tests/analysis:unknown_isa: isa = "sse9" is not known',
            "available for x86_64: x86-64, x86-64-v3, x86-64-v4",
        ],
        "unknown_shim": ['shim = "shimmy" is not known; available: auto, slim, libtorch'],
    }
    tests = []
    for target, phrases in expected.items():
        test = "{}_{}".format(name, target)
        _failure_test(
            name = test,
            phrases = phrases,
            target_compatible_with = ["@platforms//cpu:x86_64"],
            target_under_test = ":" + target,
        )
        tests.append(test)
    native.test_suite(name = name, tests = tests)
