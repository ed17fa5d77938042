"""Instruction sets that code can be generated for, which of them a target gets, and what the C++ compiler has to be told.

The table is `//toolchain/tables:isas.bzl`.
"""

load("@bazel_skylib//rules:common_settings.bzl", "BuildSettingInfo")
load("//toolchain/tables:isas.bzl", _TABLE = "ISAS")

# What a target is compiled with; of one CPU, from what all of its kind have to what the fewest have.
ISAS = {
    name: struct(cpu = isa["cpu"], copts = isa["copts"])
    for name, isa in _TABLE.items()
}

# The portable choice: what every CPU of the architecture has.
DEFAULT_ISA = {
    cpu: [name for name, isa in ISAS.items() if isa.cpu == cpu][0]
    for cpu in [isa.cpu for isa in ISAS.values()]
}

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

def _alternatives(names):
    quoted = ["`{}`".format(name) for name in names]
    return " or ".join([", ".join(quoted[:-1]), quoted[-1]])

# The attributes that `target_isas` reads.
ISA_ATTRS = {
    "isa": attr.string(
        doc = "The instruction set to generate code for: {}. ".format(_alternatives(ISAS)) +
              "Default: the build setting `//toolchain:isa`, else what the target platform says " +
              "(`//toolchain/platforms`), else what every CPU of its kind has; never the build host's.",
    ),
    "isas": attr.string_list(
        doc = """In place of `isa`: several instruction sets, such as `["x86-64-v3", "x86-64-v4"]`.

The program is built for each, and loading the model takes the best that the CPU has; on a CPU that
has none of them it is an error that says what is needed. Name `x86-64` too for a program that runs
on all. Stock PyTorch (`<name>.pt2`) gets the lowest.""",
    ),
    "_cpus": attr.label_list(
        default = ["@platforms//cpu:" + cpu for cpu in DEFAULT_ISA],
        providers = [platform_common.ConstraintValueInfo],
    ),
    "_isa": attr.label(default = "//toolchain:isa", providers = [BuildSettingInfo]),
    "_isas": attr.label_list(
        default = ["//toolchain/platforms:" + isa for isa in ISAS],
        providers = [platform_common.ConstraintValueInfo],
    ),
}

def _of_platform(ctx, constraints):
    """The name of the constraint value that the target platform has; "": none of them."""
    for constraint in constraints:
        if ctx.target_platform_has_constraint(constraint[platform_common.ConstraintValueInfo]):
            return constraint.label.name
    return ""

def target_isas(ctx, label):
    """The instruction sets to build a target for.

    Args:
        ctx: the context of a rule with ISA_ATTRS.
        label: the target's, as errors show it.

    Returns:
        list of string, the lowest first
    """
    cpu = _of_platform(ctx, ctx.attr._cpus)
    if ctx.attr.isa and ctx.attr.isas:
        fail("{}: give isa or isas, not both".format(label))
    if ctx.attr.isas:
        error = isas_error(ctx.attr.isas, cpu)
        isas = in_order(ctx.attr.isas)
    else:
        isa = ctx.attr.isa or ctx.attr._isa[BuildSettingInfo].value or _of_platform(ctx, ctx.attr._isas) or DEFAULT_ISA.get(cpu, "")
        error = isa_error(isa, cpu)
        isas = [isa]
    if error:
        fail("{}: {}".format(label, error))
    return isas
