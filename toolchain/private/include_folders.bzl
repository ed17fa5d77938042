"""include_folders: headers inside of a directory artifact, for C++ targets."""

load("@rules_cc//cc/common:cc_common.bzl", "cc_common")
load("@rules_cc//cc/common:cc_info.bzl", "CcInfo")

def _include_folders_impl(ctx):
    (folder,) = ctx.files.folder
    return [CcInfo(compilation_context = cc_common.create_compilation_context(
        headers = depset([folder]),
        system_includes = depset(["{}/{}".format(folder.path, path) for path in ctx.attr.paths]),
    ))]

include_folders = rule(
    implementation = _include_folders_impl,
    doc = "Headers inside of a directory artifact.",
    attrs = {
        "folder": attr.label(mandatory = True, doc = "The directory artifact."),
        "paths": attr.string_list(mandatory = True, doc = "The folders in it that `#include` looks into."),
    },
    provides = [CcInfo],
)
