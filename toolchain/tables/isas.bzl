"""The instruction sets: the one table of them.

Starlark loads it, and Python runs it: there are no functions and no loads. `./bazelw run //tools/tables:update` writes what Python and C++ have of it, and
`//tools/tables:tables_test` compares them.

| column | |
|---|---|
| key | the name: of the attribute `isa`, and of the constraint value in `//toolchain/platforms` |
| cpu | of `@platforms//cpu`, and as Python's `platform.machine()` calls it |
| copts | of generated code. It names no instruction set: its vector types choose their intrinsics by the macros |
| vector | the class in `torch._inductor.cpu_vec_isa` that Inductor generates for; None: scalar code |
| level | the namespace of the slim runtime's kernels for it |
| level_copts | of these kernels |
| features | what the runtime names that a CPU lacks, as gcc's `__builtin_cpu_supports` and as people call it |

Those of one CPU are in order: each has all that the one before has. The first is the portable one.
"""

# Where Inductor vectorises itself, the compiler's loop vectoriser only undoes its choices. The baseline
# gets plain loops from Inductor, and what vectors there are from the compiler. These are the names
# that gcc and clang both know.
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
