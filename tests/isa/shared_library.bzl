"""shared_library: the library of a model that stock PyTorch loads, alone."""

load("//rules:providers.bzl", "AotiLibraryInfo")

def _shared_library_impl(ctx):
    return DefaultInfo(files = depset([ctx.attr.library[AotiLibraryInfo].shared_library]))

shared_library = rule(
    implementation = _shared_library_impl,
    doc = "`lib<name>.so` of an aoti_library: the program and its kernels, and nothing of the runtime.",
    attrs = {"library": attr.label(mandatory = True, providers = [AotiLibraryInfo])},
)
