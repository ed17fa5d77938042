"""How Bazel calls gcc or clang for another CPU."""

load("@rules_cc//cc:action_names.bzl", "ACTION_NAMES")
load("@rules_cc//cc:cc_toolchain_config_lib.bzl", "feature", "flag_group", "flag_set", "tool_path", "with_feature_set")
load("@rules_cc//cc/common:cc_common.bzl", "cc_common")
load("@rules_cc//cc/toolchains:cc_toolchain_config_info.bzl", "CcToolchainConfigInfo")

_COMPILE = [
    ACTION_NAMES.assemble,
    ACTION_NAMES.preprocess_assemble,
    ACTION_NAMES.c_compile,
    ACTION_NAMES.cpp_compile,
    ACTION_NAMES.cpp_header_parsing,
    ACTION_NAMES.cpp_module_compile,
    ACTION_NAMES.cpp_module_codegen,
    ACTION_NAMES.linkstamp_compile,
]

_LINK = [
    ACTION_NAMES.cpp_link_executable,
    ACTION_NAMES.cpp_link_dynamic_library,
    ACTION_NAMES.cpp_link_nodeps_dynamic_library,
]

# Nothing of the place or time of the build gets into an object.
_REPRODUCIBLE = [
    "-no-canonical-prefixes",
    "-Wno-builtin-macro-redefined",
    "-D__DATE__=\"redacted\"",
    "-D__TIMESTAMP__=\"redacted\"",
    "-D__TIME__=\"redacted\"",
]

def _flags(actions, flags, **kwargs):
    return flag_set(actions = actions, flag_groups = [flag_group(flags = flags)], **kwargs)

def _mode(name):
    return [with_feature_set(features = [name])]

# Bazel asks for a path of each, and calls the others never.
_TOOLS = ["ar", "cpp", "dwp", "gcc", "gcov", "ld", "nm", "objcopy", "objdump", "strip"]

def _cross_cc_toolchain_config_impl(ctx):
    features = [
        feature(name = "opt"),
        feature(name = "dbg"),
        feature(name = "fastbuild"),
        feature(name = "supports_pic", enabled = True),
        feature(name = "supports_dynamic_linker", enabled = True),
        feature(name = "supports_start_end_lib", enabled = False),
        feature(
            name = "default_compile_flags",
            enabled = True,
            flag_sets = [
                _flags(_COMPILE, ["-fPIC", "-fstack-protector", "-Wall", "-fno-omit-frame-pointer"]),
                _flags(_COMPILE, ["-g0", "-O2", "-DNDEBUG", "-ffunction-sections", "-fdata-sections"], with_features = _mode("opt")),
                _flags(_COMPILE, ["-g"], with_features = _mode("dbg")),
            ],
        ),
        feature(
            name = "default_link_flags",
            enabled = True,
            flag_sets = [
                _flags(_LINK, ["-Wl,-z,relro,-z,now", "-Wl,--build-id=none"]),
                _flags(_LINK, ["-Wl,--gc-sections"], with_features = _mode("opt")),
                _flags([ACTION_NAMES.cpp_link_executable], ["-pie"]),
            ] + ([_flags(_LINK, ctx.attr.link_flags)] if ctx.attr.link_flags else []),
        ),
        # The last of the flags: the user's own can't undo them.
        feature(
            name = "unfiltered_compile_flags",
            enabled = True,
            flag_sets = [_flags(_COMPILE, _REPRODUCIBLE + ctx.attr.unfiltered_compile_flags)],
        ),
    ]
    return cc_common.create_cc_toolchain_config_info(
        ctx = ctx,
        toolchain_identifier = "{}-{}".format(ctx.attr.compiler, ctx.attr.target),
        features = features,
        cxx_builtin_include_directories = ctx.attr.include_directories,
        host_system_name = "local",
        target_system_name = ctx.attr.target,
        target_cpu = ctx.attr.cpu,
        target_libc = "glibc",
        compiler = ctx.attr.compiler,
        abi_version = "unknown",
        abi_libc_version = "unknown",
        tool_paths = [
            tool_path(name = name, path = ctx.attr.tools.get(name, "unavailable"))
            for name in _TOOLS
        ],
    )

cross_cc_toolchain_config = rule(
    implementation = _cross_cc_toolchain_config_impl,
    doc = "The configuration of a toolchain that compiles for another CPU.",
    attrs = {
        "compiler": attr.string(mandatory = True, values = ["clang", "gcc"]),
        "cpu": attr.string(mandatory = True, doc = "The target's CPU."),
        "include_directories": attr.string_list(
            mandatory = True,
            doc = "Where the compiler has its headers: paths, relative ones in the rule's repository.",
        ),
        "link_flags": attr.string_list(doc = "What programs are linked with besides."),
        "target": attr.string(mandatory = True, doc = "The target, as the compiler calls it."),
        "tools": attr.string_dict(
            mandatory = True,
            doc = "Bazel's name of a tool -> its path, a relative one in the rule's package.",
        ),
        "unfiltered_compile_flags": attr.string_list(doc = "Flags that a user's own can't undo."),
    },
    provides = [CcToolchainConfigInfo],
)
