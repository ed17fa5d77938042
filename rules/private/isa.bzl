"""Instruction sets that code can be generated for, and what the C++ compiler has to be told.

The compiler's flags for an instruction set must agree with what code generation assumes
(toolchain/driver/aoti_driver/contract/isa.py): the generated code includes vector headers by macro.
"""

# Where Inductor vectorises itself, the compiler's loop vectoriser only undoes its choices. The baseline
# gets plain loops from Inductor, and what vectors there are from the compiler. These are the names
# that gcc and clang both know.
_EXPLICIT_VECTORS = ["-fno-tree-vectorize", "-ftree-slp-vectorize"]

# Of one CPU, from what all of its kind have to what the fewest have.
ISAS = {
    "x86-64": struct(cpu = "x86_64", copts = []),
    "x86-64-v3": struct(cpu = "x86_64", copts = _EXPLICIT_VECTORS + ["-march=x86-64-v3", "-DCPU_CAPABILITY=AVX2", "-DCPU_CAPABILITY_AVX2"]),
    "x86-64-v4": struct(cpu = "x86_64", copts = _EXPLICIT_VECTORS + ["-march=x86-64-v4", "-DCPU_CAPABILITY=AVX512", "-DCPU_CAPABILITY_AVX512"]),
    "aarch64": struct(cpu = "aarch64", copts = _EXPLICIT_VECTORS + ["-march=armv8-a", "-DCPU_CAPABILITY=NEON", "-DCPU_CAPABILITY_NEON", "-DAT_BUILD_ARM_VEC256_WITH_SLEEF"]),
}

# The portable choice: what every CPU of the architecture has.
DEFAULT_ISA = {"x86_64": "x86-64", "aarch64": "aarch64"}

def isa_error(isa, cpu):
    """Why `isa` can't be used on the target platform; None where it can.

    Args:
        isa: the attribute's value.
        cpu: "x86_64", "aarch64", or "" where the target platform is neither.

    Returns:
        A message, or None.
    """
    if not cpu:
        return "the target platform's CPU is not supported; available: {}".format(", ".join(sorted(DEFAULT_ISA)))
    if isa not in ISAS:
        return 'isa = "{}" is not known; available for {}: {}'.format(isa, cpu, ", ".join(_for_cpu(cpu)))
    if ISAS[isa].cpu != cpu:
        return 'isa = "{}" is one of {}, but the target platform is {}; available: {}'.format(
            isa,
            ISAS[isa].cpu,
            cpu,
            ", ".join(_for_cpu(cpu)),
        )
    return None

def isas_error(isas, cpu):
    """Why `isas` can't be used together on the target platform; None where they can.

    Args:
        isas: list of names.
        cpu: "x86_64", "aarch64", or "" where the target platform is neither.

    Returns:
        A message, or None.
    """
    for isa in isas:
        error = isa_error(isa, cpu)
        if error:
            return error.replace("isa = ", "isas: ", 1)
        if len([other for other in isas if other == isa]) > 1:
            return 'isas names "{}" twice'.format(isa)
    return None

def in_order(isas):
    """The instruction sets from what every CPU has to what the fewest have."""
    return [name for name in ISAS if name in isas]

def _for_cpu(cpu):
    return [name for name, isa in ISAS.items() if isa.cpu == cpu]
