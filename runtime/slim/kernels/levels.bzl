"""Compiles the same sources once for each level of the target's CPU; the runtime picks one by cpuid."""

load("@rules_cc//cc:defs.bzl", "cc_library")
load("//toolchain/tables:isas.bzl", "ISAS")

# The levels for the instruction sets that models are compiled for.
_LEVELS = {
    isa["level"]: struct(cpu = isa["cpu"], copts = isa["level_copts"])
    for isa in ISAS.values()
}

_CPUS = {facts.cpu: None for facts in _LEVELS.values()}

def level_libraries(name, copts, deps, visibility, tags = [], **kwargs):
    """Makes `name`, a cc_library of all levels of the target's CPU.

    Args:
        name: the library's name.
        copts: copts of all levels.
        deps: dependencies; targets that include headers of `name` need these too.
        visibility: of the library.
        tags: of the library.
        **kwargs: attributes of the cc_libraries of the levels. Their sources put everything into
            `namespace AOTI_ISA`.
    """
    testonly = kwargs.get("testonly", False)
    for level, facts in _LEVELS.items():
        cc_library(
            name = "{}_{}".format(name, level),
            copts = copts + facts.copts + ["-DAOTI_ISA=" + level],
            features = ["layering_check"],
            linkstatic = True,
            tags = ["manual"],
            target_compatible_with = ["@platforms//cpu:" + facts.cpu],
            visibility = ["//visibility:private"],
            deps = deps,
            **kwargs
        )
    cc_library(
        name = name,
        testonly = testonly,
        tags = tags,
        visibility = visibility,
        deps = deps + select({
            "@platforms//cpu:" + cpu: [
                ":{}_{}".format(name, level)
                for level, facts in _LEVELS.items()
                if facts.cpu == cpu
            ]
            for cpu in _CPUS
        }),
    )
