"""slim_room: the library of a room (a folder of //runtime/slim), plain and with sanitizers."""

load("@rules_cc//cc:defs.bzl", "cc_library")
load("//runtime/private:grouped.bzl", "grouped")

# The flags that each sanitizer adds to compiling and linking.
SANITIZERS = {
    "asan": [
        "-fsanitize=address,undefined",
        # AddressSanitizer finds the same errors, and these double the compile time.
        "-fno-sanitize=alignment,nonnull-attribute,null,object-size,pointer-overflow,vptr",
        "-fno-sanitize-recover=all",
        "-fno-omit-frame-pointer",
    ],
    "tsan": ["-fsanitize=thread"],
}

# The flags for the runtime's own sources.
COPTS = [
    "-std=c++20",
    "-fvisibility=hidden",
    "-fvisibility-inlines-hidden",
    "-ffunction-sections",
    "-fdata-sections",
    "-DSTANDALONE_TORCH_HEADER",
    "-DC10_USING_CUSTOM_GENERATED_MACROS",
]

# The flags with a sanitizer.
SANITIZED_COPTS = {
    sanitizer: COPTS + flags + [
        "-O1",
        "-g1",
        "-w",
    ]
    for sanitizer, flags in SANITIZERS.items()
}

def room_sources(name = "sources"):
    """Makes what tests:rooms_test reads of a room.

    Args:
        name: the name of the filegroup.
    """
    native.filegroup(
        name = name,
        testonly = True,
        srcs = ["BUILD.bazel"] + native.glob([
            "*.cc",
            "*.h",
        ]),
        visibility = ["//runtime/slim/tests:__pkg__"],
    )

def rooms_of(names, suffix = ""):
    """The libraries of rooms.

    Args:
        names: names of rooms.
        suffix: "", or "_" and the name of a sanitizer.

    Returns:
        list of labels.
    """
    return ["//runtime/slim/{0}:{0}{1}".format(name, suffix) for name in names]

def slim_room(name, rooms = [], deps = [], groups = None, visibility = None):
    """Makes the room's library `name`, and `name`_asan and `name`_tsan for tests:fuzz_*_test.

    Args:
        name: the room's name, which is its folder's.
        rooms: the rooms whose headers this one includes.
        deps: other dependencies.
        groups: which sources are compiled together, see grouped(); all of them if it isn't given.
        visibility: of the libraries.
    """
    room_sources(name = "sources")
    if groups == None:
        groups = {name: native.glob(["*.cc"])}
    srcs, members = grouped(name, groups, native.glob(["*.cc"]))
    variants = {"": COPTS + ["-O2"]}  # whatever the compilation mode is, like the models' own kernels
    for sanitizer, copts in SANITIZED_COPTS.items():
        variants["_" + sanitizer] = copts
    for suffix, copts in variants.items():
        cc_library(
            name = name + suffix,
            testonly = suffix != "",
            srcs = srcs,
            hdrs = native.glob(["*.h"]),
            # The sources that the files of groups include.
            textual_hdrs = members,
            copts = copts,
            features = ["layering_check"],
            linkstatic = True,
            tags = ["manual"] if suffix else [],
            visibility = visibility,
            # All operators that are called by name, which register themselves.
            alwayslink = suffix != "",
            deps = rooms_of(rooms, suffix) + deps,
        )
