"""whole_library: a static library of everything that some C++ libraries link, for who has no Bazel."""

load("@rules_cc//cc:find_cc_toolchain.bzl", "use_cc_toolchain")
load("@rules_cc//cc/common:cc_common.bzl", "cc_common")
load("@rules_cc//cc/common:cc_info.bzl", "CcInfo")
load("//rules/private:cc.bzl", "cc_toolchain_of", "static_library")  # buildifier: disable=bzl-visibility

def _whole_library_impl(ctx):
    cc = cc_toolchain_of(ctx)
    objects = {}
    for dep in ctx.attr.deps:
        for linker_input in dep[CcInfo].linking_context.linker_inputs.to_list():
            for library in linker_input.libraries:
                objects.update([(file, None) for file in library.pic_objects or library.objects])
    outputs = cc_common.create_compilation_outputs(pic_objects = depset(objects.keys()))
    linking_context = static_library(ctx, cc, ctx.label.name, [outputs], [])
    return [DefaultInfo(files = depset([
        library.pic_static_library
        for linker_input in linking_context.linker_inputs.to_list()
        for library in linker_input.libraries
    ]))]

whole_library = rule(
    implementation = _whole_library_impl,
    doc = "One archive with the objects of `deps` and of all that they depend on.",
    attrs = {
        "deps": attr.label_list(mandatory = True, providers = [CcInfo], doc = "The libraries."),
    },
    fragments = ["cpp"],
    toolchains = use_cc_toolchain(),
)
