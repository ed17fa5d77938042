"""Unit tests of rules/private/isa.bzl."""

load("@bazel_skylib//lib:unittest.bzl", "asserts", "unittest")

# buildifier: disable=bzl-visibility
load("//rules/private:isa.bzl", "DEFAULT_ISA", "ISAS", "isa_error")

def _defaults_impl(ctx):
    env = unittest.begin(ctx)
    for cpu, isa in DEFAULT_ISA.items():
        asserts.equals(env, None, isa_error(isa, cpu))

    # The portable one: whoever asks for nothing gets code that runs on every CPU of the kind.
    asserts.equals(env, "x86-64", DEFAULT_ISA["x86_64"])
    for flag in ISAS["x86-64"].copts:
        asserts.false(env, flag.startswith("-march"), "{} asks for more than every CPU has".format(flag))
    return unittest.end(env)

_defaults_test = unittest.make(_defaults_impl)

def _errors_impl(ctx):
    env = unittest.begin(ctx)
    asserts.equals(
        env,
        'isa = "avx512" is not known; available for x86_64: x86-64, x86-64-v3, x86-64-v4',
        isa_error("avx512", "x86_64"),
    )
    asserts.equals(
        env,
        'isa = "x86-64-v3" is one of x86_64, but the target platform is aarch64; available: aarch64',
        isa_error("x86-64-v3", "aarch64"),
    )
    asserts.equals(
        env,
        "the target platform's CPU is not supported; available: aarch64, x86_64",
        isa_error("", ""),
    )
    return unittest.end(env)

_errors_test = unittest.make(_errors_impl)

def isa_test_suite(name):
    """All tests of this file.

    Args:
        name: the suite's name.
    """
    unittest.suite(name, _defaults_test, _errors_test)
