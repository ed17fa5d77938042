"""Variants: the alternatives of inputs, and the programs that they make."""

load("@bazel_skylib//lib:unittest.bzl", "asserts", "unittest")
load("//rules:defs.bzl", "aoti_variant")
load("//rules/private:aoti_variant.bzl", "expand_variants", "split_alternatives")  # buildifier: disable=bzl-visibility

def _alternatives_impl(ctx):
    env = unittest.begin(ctx)
    for text, expected in {
        "'a|b' | 'c'": ["'a|b'", "'c'"],
        "1 | -1": ["1", "-1"],
        "bool": ["True", "False"],
        "bool[n] | None": ["bool[n]", "None"],
        "float in 0..1": ["float in 0..1"],
        "float32|bfloat16[n, 4] in 0..1 | None": ["float32[n, 4] in 0..1", "bfloat16[n, 4] in 0..1", "None"],
        "float32[a | b]": ["float32[a | b]"],
        "int64[n]": ["int64[n]"],
    }.items():
        asserts.equals(env, expected, split_alternatives(text))
    return unittest.end(env)

_alternatives_test = unittest.make(_alternatives_impl)

_INPUTS = {
    "x": "float32|float16[n, 4]",
    "mask": "bool[n] | None",
    "mode": "'Mean' | 'max-1'",
}

def _programs_impl(ctx):
    env = unittest.begin(ctx)
    asserts.equals(env, {}, expand_variants({"x": "float32[n]"}, {"n": "1..4"}, {}).programs)

    # Without variants: each combination.
    found = expand_variants(_INPUTS, {"n": "1..4"}, {})
    asserts.equals(env, None, found.error)
    asserts.equals(env, [
        "x_float32_mask_mode_mean",
        "x_float32_mask_mode_max_1",
        "x_float32_mask_none_mode_mean",
        "x_float32_mask_none_mode_max_1",
        "x_float16_mask_mode_mean",
        "x_float16_mask_mode_max_1",
        "x_float16_mask_none_mode_mean",
        "x_float16_mask_none_mode_max_1",
    ], found.programs.keys())
    asserts.equals(
        env,
        {"mask": "None", "mode": "'Mean'", "x": "float16[n, 4]"},
        found.programs["x_float16_mask_none_mode_mean"].inputs,
    )

    # A variant that leaves one input open; a size alone; a dim that a variant does not have.
    found = expand_variants(_INPUTS | {"y": "int64[m] | None"}, {"n": "1..4", "m": "2*half", "half": "1..8"}, {
        "one": aoti_variant(
            dynamic_dims = {"n": "1"},
            inputs = {"x": "float32[n, 4]", "mask": "None", "y": "None"},
            options = {"a": "1"},
        ),
        "rest": aoti_variant(inputs = {"x": "float16[n, 4]", "mask": "bool[n]", "mode": "'Mean'", "y": "int64[m]"}),
    })
    asserts.equals(env, ["one_mode_mean", "one_mode_max_1", "rest"], found.programs.keys())
    asserts.equals(env, {"n": "1..1"}, found.programs["one_mode_mean"].dynamic_dims)
    asserts.equals(env, {"a": "1"}, found.programs["one_mode_mean"].options)
    asserts.equals(env, {"n": "1..4", "m": "2*half", "half": "1..8"}, found.programs["rest"].dynamic_dims)

    # A structure, or None.
    cache = {"x": "int64[1]", "past": "None", "past[0]": "float32[n]", "past[1]": "float32[n]"}
    found = expand_variants(cache, {"n": "1..4"}, {}).programs
    asserts.equals(env, ["past_none", "past"], found.keys())
    asserts.equals(env, {"past": "None", "x": "int64[1]"}, found["past_none"].inputs)
    asserts.equals(env, {"past[0]": "float32[n]", "past[1]": "float32[n]", "x": "int64[1]"}, found["past"].inputs)
    asserts.equals(env, {}, found["past_none"].dynamic_dims)
    found = expand_variants(cache, {"n": "1..4"}, {
        "first": aoti_variant(inputs = {"past": "None"}),
        "next": aoti_variant(inputs = {"past[0]": "float32[n]"}),
    }).programs
    asserts.equals(env, ["first", "next"], found.keys())

    # What gives a dim of a sum its value is None: the dim counts as 0.
    found = expand_variants(
        cache | {"mask": "bool[seq, total + seq] | None", "x": "int64[seq]", "past[0]": "float32[total]"},
        {"seq": "1..8", "n": "1..4", "total": "2*n"},
        {},
    ).programs
    asserts.equals(env, ["past_none_mask", "past_none_mask_none", "past_mask", "past_mask_none"], found.keys())
    asserts.equals(env, {"n": "0..0", "seq": "1..8", "total": "2*n"}, found["past_none_mask"].dynamic_dims)
    asserts.equals(env, {"seq": "1..8"}, found["past_none_mask_none"].dynamic_dims)
    asserts.equals(env, {"n": "1..4", "seq": "1..8", "total": "2*n"}, found["past_mask"].dynamic_dims)

    # Ranks, and names that would be equal.
    asserts.equals(env, ["x_1d", "x_2d"], expand_variants({"x": "float32[n] | float32[n, 2]"}, {}, {}).programs.keys())
    asserts.equals(env, ["k_0", "k_1"], expand_variants({"k": "'a' | 'A'"}, {}, {}).programs.keys())
    return unittest.end(env)

_programs_test = unittest.make(_programs_impl)

def _errors_impl(ctx):
    env = unittest.begin(ctx)
    for variants, expected in [
        (
            {"one": {"inputs": {}}},
            'variants["one"] is a dict, expected aoti_variant(inputs = ...)',
        ),
        (
            {"one": aoti_variant(inputs = {"masks": "None"})},
            'variants["one"]: inputs["masks"]: the model has no such entry in `inputs`; it has x, mask, mode',
        ),
        (
            {"one": aoti_variant(dynamic_dims = {"m": "1"})},
            'variants["one"]: dynamic_dims["m"]: the model has no such entry in `dynamic_dims`; it has n',
        ),
        (
            {
                "a": aoti_variant(inputs = {"x": "float32[n, 4]", "mode": "'Mean'"}),
                "a_mask": aoti_variant(inputs = {"x": "float32[n, 4]", "mode": "'Mean'", "mask": "None"}),
            },
            'variants: two are called "a_mask"; rename "a_mask"',
        ),
        (
            {"One": aoti_variant(inputs = {"x": "float32[n, 4]", "mode": "'Mean'", "mask": "None"})},
            'variants: "One" can\'t name a function in C++ and Python: use lower case letters, digits and single "_" between them',
        ),
    ]:
        asserts.equals(env, expected, expand_variants(_INPUTS, {"n": "1..4"}, variants).error)
    many = {"a{}".format(i): "bool" for i in range(7)}
    asserts.equals(
        env,
        "variants: more than 64 programs. Say in `variants` which combinations are needed",
        expand_variants(many, {}, {}).error,
    )
    return unittest.end(env)

_errors_test = unittest.make(_errors_impl)

def variants_test_suite(name):
    """The tests of variants.

    Args:
        name: of the test suite.
    """
    unittest.suite(name, _alternatives_test, _programs_test, _errors_test)
