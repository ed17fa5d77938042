"""How Bazel calls the compiler that install_zig.py set up."""

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
    "-ffile-compilation-dir=.",
    "-Wno-builtin-macro-redefined",
    "-D__DATE__=\"redacted\"",
    "-D__TIMESTAMP__=\"redacted\"",
    "-D__TIME__=\"redacted\"",
]

def _flags(actions, flags, **kwargs):
    return flag_set(actions = actions, flag_groups = [flag_group(flags = flags)], **kwargs)

def _mode(name):
    return [with_feature_set(features = [name])]

def _zig_cc_toolchain_config_impl(ctx):
    tools = {
        "ar": "ar",
        "cpp": "cc",
        "dwp": "unavailable",
        "gcc": "cc",
        "gcov": "unavailable",
        "ld": "ld.lld",
        "nm": "unavailable",
        "objcopy": "objcopy",
        "objdump": "unavailable",
        "strip": "strip",
    }
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
            ],
        ),
        # The last of the flags: the user's own can't undo them.
        feature(
            name = "unfiltered_compile_flags",
            enabled = True,
            flag_sets = [_flags(_COMPILE, _REPRODUCIBLE)],
        ),
    ]
    return cc_common.create_cc_toolchain_config_info(
        ctx = ctx,
        toolchain_identifier = "zig-" + ctx.attr.target,
        features = features,
        cxx_builtin_include_directories = ["include"],
        host_system_name = "local",
        target_system_name = ctx.attr.target,
        target_cpu = ctx.attr.cpu,
        target_libc = "glibc",
        compiler = "clang",
        abi_version = "unknown",
        abi_libc_version = "unknown",
        tool_paths = [tool_path(name = name, path = "bin/" + file) for name, file in tools.items()],
    )

zig_cc_toolchain_config = rule(
    implementation = _zig_cc_toolchain_config_impl,
    doc = "The configuration of a toolchain in whose repository install_zig.py has run.",
    attrs = {
        "cpu": attr.string(mandatory = True, doc = "The target's CPU."),
        "target": attr.string(mandatory = True, doc = "The target, as clang calls it."),
    },
    provides = [CcToolchainConfigInfo],
)
