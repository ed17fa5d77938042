"""Targets that must not pass analysis, and what they say."""

load("@bazel_skylib//lib:unittest.bzl", "analysistest", "asserts")
load("//rules:defs.bzl", "aoti_library", "torch_custom_ops", "torch_export", "torch_import", "torch_operator")
load(":fake_toolchains.bzl", "FAKE_TOOLCHAINS", "FAKE_TOOLCHAINS_WITHOUT_LIBTORCH")

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

_failure_without_libtorch_test = analysistest.make(
    _failure_impl,
    attrs = {"phrases": attr.string_list(mandatory = True)},
    config_settings = FAKE_TOOLCHAINS_WITHOUT_LIBTORCH,
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
    for target, isas in {
        "foreign_isas": ["x86-64", "aarch64"],
        "isas_twice": ["x86-64-v3", "x86-64-v3"],
    }.items():
        aoti_library(
            name = target,
            isas = isas,
            program = ":tiny.program",
            tags = ["manual"],
            target_compatible_with = ["@platforms//cpu:x86_64"],
        )
    aoti_library(
        name = "isa_and_isas",
        isa = "x86-64",
        isas = ["x86-64-v3"],
        program = ":tiny.program",
        tags = ["manual"],
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
    torch_import(
        name = "import_of_nothing",
        tags = ["manual"],
    )
    torch_import(
        name = "half_frozen",
        frozen = [":frozen/graph.json"],
        tags = ["manual"],
    )
    torch_import(
        name = "frozen_with_dims",
        dynamic_dims = {"n": "1..2"},
        frozen = [":frozen/graph.json"],
        tags = ["manual"],
    )
    torch_import(
        name = "frozen_with_precision",
        frozen = [":frozen/graph.json"],
        precision = "bfloat16",
        tags = ["manual"],
    )
    torch_import(
        name = "package_with_weights",
        program = ":frozen_file.pt2",
        tags = ["manual"],
        weights = ":tiny.bin",
    )
    for target, abi in {
        "operators_on_tensor": "libtorch",
        "stable_operators": "stable",
    }.items():
        torch_custom_ops(
            name = target,
            srcs = ["operators.cc"],
            abi = abi,
            python = ["tiny.py"],
            tags = ["manual"],
        )
    torch_export(
        name = "on_tensor.program",
        custom_ops = [":operators_on_tensor"],
        entry_point = "tiny:build",
        inputs = {"x": "float32[4]"},
        module = ":tiny_py",
        tags = ["manual"],
    )
    aoti_library(
        name = "on_tensor",
        program = ":on_tensor.program",
        shim = "slim",
        tags = ["manual"],
    )
    for target, operator in {
        "operator_in_aten": "aten::tiny",
        "operator_without_namespace": "tiny",
    }.items():
        torch_operator(
            name = target,
            library = ":tiny",
            operator = operator,
            tags = ["manual"],
        )
    torch_operator(
        name = "operator_elsewhere",
        testonly = True,
        differentiable = True,
        library = "//tests/variants:columns",
        tags = ["manual"],
    )
    expected = {
        "foreign_isa": ['isa = "aarch64" is one of aarch64, but the target platform is x86_64'],
        "foreign_isas": ['//tests/analysis:foreign_isas: isas: "aarch64" is one of aarch64, but the target platform is x86_64'],
        "frozen_with_dims": ["//tests/analysis:frozen_with_dims: `inputs` and `dynamic_dims` are in the frozen manifest already"],
        "frozen_with_precision": ["//tests/analysis:frozen_with_precision: precision = \"bfloat16\": a frozen program has the precision that it was frozen with; leave it out here"],
        "half_frozen": [
            "//tests/analysis:half_frozen: frozen lacks manifest.json, weights.json",
            'glob(["NAME.frozen/*"])',
        ],
        "import_of_nothing": [
            "//tests/analysis:import_of_nothing: give either `program` (a `.pt2` that torch.export.save wrote) or `frozen`",
        ],
        "isa_and_isas": ["//tests/analysis:isa_and_isas: give isa or isas, not both"],
        "isas_twice": ['//tests/analysis:isas_twice: isas names "x86-64-v3" twice'],
        "no_inputs": ["//tests/analysis:no_inputs: give `inputs`", "or `sample_inputs`"],
        "no_threads": ["//tests/analysis:no_threads: threads = -1: give the number of threads of a call, or 0"],
        "not-a-name": ["can't name a Python module or a C++ class"],
        "on_tensor": [
            '//tests/analysis:on_tensor: shim = "slim", but the operators of //tests/analysis:operators_on_tensor are written for libtorch',
            "Port them to PyTorch's stable C++ API: STABLE_TORCH_LIBRARY and torch::stable::Tensor in place of them",
        ],
        "operator_elsewhere_backward.program": [
            "//tests/analysis:operator_elsewhere: differentiable = True, but //tests/variants:columns has 2 variants",
            "Write torch_operator in //tests/variants, below the model",
        ],
        "operator_in_aten.source": [
            '//tests/analysis:operator_in_aten: operator = "aten::tiny": the namespace "aten" is PyTorch\'s own; choose another one',
        ],
        "operator_without_namespace.source": [
            '//tests/analysis:operator_without_namespace: operator = "tiny" must be "namespace::name", of letters, digits and "_"',
        ],
        "package_with_weights": [
            '//tests/analysis:package_with_weights: weights = "//tests/analysis:tiny.bin": a `.pt2` brings its own weights',
            "give `weights` to aoti_library",
        ],
        "stable_operators.compiled": [
            "//tests/analysis:stable_operators: the torch runtime toolchain has no headers of torch's stable C++ API; give its `stable_headers`",
        ],
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
    without_libtorch = {
        "half_a_python": ["//tests/analysis:half_a_python: give both pybind11 and python_headers, or neither"],
        "on_libtorch": [
            '//tests/analysis:on_libtorch: shim = "libtorch", but the torch runtime toolchain has no libtorch for the target platform.',
            'Use shim = "slim" or "auto"',
        ],
    }
    for target, phrases in without_libtorch.items():
        test = "{}_without_libtorch_{}".format(name, target)
        _failure_without_libtorch_test(
            name = test,
            phrases = phrases,
            target_under_test = ":" + target,
        )
        tests.append(test)
    native.test_suite(name = name, tests = tests)
