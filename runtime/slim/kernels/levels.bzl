"""Compiles the same sources once for each level of the target's CPU; the runtime picks one by cpuid."""

load("@rules_cc//cc:defs.bzl", "cc_library")

_LEVELS = {
    "baseline": struct(cpu = "x86_64", copts = []),
    "x86_v3": struct(cpu = "x86_64", copts = ["-march=x86-64-v3"]),
    "x86_v4": struct(cpu = "x86_64", copts = ["-march=x86-64-v4", "-mprefer-vector-width=512"]),
    "neon": struct(cpu = "aarch64", copts = []),
}

def level_libraries(name, copts, deps, visibility, tags = [], **kwargs):
    """Makes `name`, a cc_library of all levels of the target's CPU.

    Args:
        name: the library's name.
        copts: copts of all levels.
        deps: dependencies; what includes the headers of `name` gets theirs.
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
            for cpu in ["x86_64", "aarch64"]
        }),
    )
