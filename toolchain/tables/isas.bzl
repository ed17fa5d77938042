"""The table of instruction sets.

Starlark loads this file, and Python executes it, so it has no functions and no loads. `./bazelw run //tools/tables:update`
writes the copies in Python and C++, and `//tools/tables:tables_test` compares them.

| column | |
|---|---|
| key | the name, in the attribute `isa` and of the constraint value in `//toolchain/platforms` |
| cpu | the name in `@platforms//cpu` and in Python's `platform.machine()` |
| copts | flags for generated code, which names no instruction set: its vector types choose their intrinsics by these macros |
| vector | the class in `torch._inductor.cpu_vec_isa` that Inductor generates for; None: scalar code |
| level | the namespace of the slim runtime's kernels for it |
| level_copts | flags for these kernels |
| features | the features that an error names if a CPU lacks them: gcc's name for `__builtin_cpu_supports`, and the usual name |

The instruction sets of one CPU are in ascending order: each includes the one before. The first is the portable one.
"""

# If Inductor writes vectors itself, the compiler's loop vectoriser only undoes its choices. For the
# baseline, Inductor writes plain loops, and the compiler vectorises them. gcc and clang both have
# these flags.
_EXPLICIT_VECTORS = ["-fno-tree-vectorize", "-ftree-slp-vectorize"]

ISAS = {
    # SSE2: every 64-bit x86 CPU.
    "x86-64": {
        "cpu": "x86_64",
        "copts": [],
        "vector": None,
        "level": "baseline",
        "level_copts": [],
        "features": {},
    },
    # AVX2, FMA, BMI: Intel from Haswell (2013), AMD from Excavator and Zen (2015, 2017).
    "x86-64-v3": {
        "cpu": "x86_64",
        "copts": _EXPLICIT_VECTORS + ["-march=x86-64-v3", "-DCPU_CAPABILITY=AVX2", "-DCPU_CAPABILITY_AVX2"],
        "vector": "VecAVX2",
        "level": "x86_v3",
        "level_copts": ["-march=x86-64-v3"],
        "features": {"avx2": "AVX2", "fma": "FMA", "bmi": "BMI1", "bmi2": "BMI2"},
    },
    # AVX-512 F, BW, CD, DQ, VL: Intel servers from Skylake (2017), AMD from Zen 4 (2022).
    "x86-64-v4": {
        "cpu": "x86_64",
        "copts": _EXPLICIT_VECTORS + ["-march=x86-64-v4", "-DCPU_CAPABILITY=AVX512", "-DCPU_CAPABILITY_AVX512"],
        "vector": "VecAVX512",
        "level": "x86_v4",
        "level_copts": ["-march=x86-64-v4", "-mprefer-vector-width=512"],
        "features": {"avx512f": "AVX512F", "avx512bw": "AVX512BW", "avx512cd": "AVX512CD", "avx512dq": "AVX512DQ", "avx512vl": "AVX512VL"},
    },
    # NEON: every 64-bit Arm CPU.
    "aarch64": {
        "cpu": "aarch64",
        "copts": _EXPLICIT_VECTORS + ["-march=armv8-a", "-DCPU_CAPABILITY=NEON", "-DCPU_CAPABILITY_NEON", "-DAT_BUILD_ARM_VEC256_WITH_SLEEF"],
        "vector": "VecNEON",
        "level": "neon",
        "level_copts": [],
        "features": {},
    },
}
