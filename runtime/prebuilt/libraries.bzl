"""prebuilt_libraries: the runtime's libraries as files that a release brings."""

load("@bazel_skylib//rules:common_settings.bzl", "BuildSettingInfo")
load("@rules_cc//cc:find_cc_toolchain.bzl", "find_cc_toolchain", "use_cc_toolchain")
load("@rules_cc//cc/common:cc_common.bzl", "cc_common")
load("@rules_cc//cc/common:cc_info.bzl", "CcInfo")
load(":archives.bzl", "ARCHIVES")

def _objects(ctx, name, linker_inputs):
    """The object files, under names that differ: an archive has one file of a name."""
    objects = []
    for linker_input in linker_inputs:
        owner = linker_input.owner
        room = "_".join([part for part in owner.package.split("/") if part != owner.name] + [owner.name])
        for library in linker_input.libraries:
            if not library.pic_objects:
                fail("{}: {} has no position-independent objects; the C++ toolchain has to support them".format(ctx.label, owner))
            for file in library.pic_objects:
                link = ctx.actions.declare_file("{}_objects/{}_{}".format(name, room, file.basename))
                ctx.actions.symlink(output = link, target_file = file)
                objects.append(link)
    return objects

def _archive(ctx, name, objects):
    """Declares the action that archives object files; returns the archive."""
    toolchain = find_cc_toolchain(ctx)
    context, _ = cc_common.create_linking_context_from_compilation_outputs(
        actions = ctx.actions,
        name = "{}_{}".format(ctx.label.name, name),
        cc_toolchain = toolchain,
        compilation_outputs = cc_common.create_compilation_outputs(pic_objects = depset(objects)),
        disallow_dynamic_library = True,
        feature_configuration = cc_common.configure_features(
            ctx = ctx,
            cc_toolchain = toolchain,
            requested_features = ctx.features,
            unsupported_features = ctx.disabled_features,
        ),
    )
    return context.linker_inputs.to_list()[0].libraries[0].pic_static_library

def _prebuilt_libraries_impl(ctx):
    from_source = ctx.attr._from_source
    if ARCHIVES and not from_source[BuildSettingInfo].value:
        fail("{}: these libraries are made from the source; build with --{}".format(ctx.label, from_source.label))
    files = []
    in_earlier = {}
    for target in ctx.attr.libraries:
        inputs = [
            linker_input
            for linker_input in target[CcInfo].linking_context.linker_inputs.to_list()
            if linker_input.libraries and linker_input.owner not in in_earlier
        ]
        in_earlier.update({linker_input.owner: None for linker_input in inputs})
        name = target.label.name
        file = ctx.actions.declare_file("lib{}.pic.a".format(name))
        ctx.actions.symlink(output = file, target_file = _archive(ctx, name, _objects(ctx, name, inputs)))
        files.append(file)
    return DefaultInfo(files = depset(files))

prebuilt_libraries = rule(
    implementation = _prebuilt_libraries_impl,
    doc = """Archives libraries with those that they depend on, as `lib` and a library's name and `.pic.a`.

What an earlier library of the list has in it, a later one does not.""",
    attrs = {
        "libraries": attr.label_list(mandatory = True, providers = [CcInfo]),
        "_from_source": attr.label(default = "//runtime:from_source", providers = [BuildSettingInfo]),
    },
    fragments = ["cpp"],
    toolchains = use_cc_toolchain(),
)
