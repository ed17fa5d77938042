"""The library of the C ABI, plain and with sanitizers."""

load("@rules_cc//cc:defs.bzl", "cc_library")
load(":groups.bzl", "grouped")
load(":levels.bzl", "level_libraries")

# What each adds to compiling and linking.
SANITIZERS = {
    "asan": [
        "-fsanitize=address,undefined",
        # AddressSanitizer sees what these would, and they double the time that compiling takes.
        "-fno-sanitize=alignment,nonnull-attribute,null,object-size,pointer-overflow,vptr",
        "-fno-sanitize-recover=all",
        "-fno-omit-frame-pointer",
    ],
    "tsan": ["-fsanitize=thread"],
}

def slim_library(name, copts, kernel_copts = [], srcs = [], kernels = None, **kwargs):
    """Makes `name`, a cc_library of this package's sources.

    Args:
        name: the library's name.
        copts: copts of all sources.
        kernel_copts: more copts of the kernels, which come last.
        srcs: more sources.
        kernels: the name of the kernels' library; `name` with a suffix if it isn't given.
        **kwargs: attributes of the cc_library; tags and testonly are the kernels' too.
    """
    kernels = kernels or name + "_kernels"
    level_libraries(
        name = kernels,
        srcs = grouped(native.glob(["kernels/*.cc"])),
        copts = copts + [
            "-ffp-contract=fast",
            "-fno-exceptions",
        ] + kernel_copts,
        deps = [
            ":grouped_sources",
            ":headers",
        ],
        tags = kwargs.get("tags", []),
        testonly = kwargs.get("testonly", False),
    )
    cc_library(
        name = name,
        srcs = grouped(native.glob([
            "*.cc",
            "ops/*.cc",
        ])) + srcs,
        copts = copts,
        linkstatic = True,
        deps = [
            ":grouped_sources",
            ":headers",
            ":" + kernels,
        ],
        **kwargs
    )
