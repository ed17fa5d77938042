"""Targets that stand for parts of the torch runtime toolchain, so that a cc_library can depend on them."""

load("@rules_cc//cc/common:cc_info.bzl", "CcInfo")

_RUNTIME_TOOLCHAIN = Label("//toolchain:runtime_toolchain_type")

def _dynamic_libraries(cc_info):
    return [
        library.dynamic_library
        for linker_input in cc_info.linking_context.linker_inputs.to_list()
        for library in linker_input.libraries
        if library.dynamic_library
    ]

def _forwarding_rule(field, doc):
    def _impl(ctx):
        # Empty where the target platform has none: targets that need it check the toolchain first.
        cc_info = getattr(ctx.toolchains[_RUNTIME_TOOLCHAIN].torch_runtime, field) or CcInfo()
        return [
            cc_info,
            DefaultInfo(runfiles = ctx.runfiles(files = _dynamic_libraries(cc_info))),
        ]

    return rule(
        implementation = _impl,
        doc = doc,
        provides = [CcInfo],
        toolchains = [_RUNTIME_TOOLCHAIN],
    )

current_libtorch = _forwarding_rule("libtorch", "libtorch of the current torch runtime toolchain.")

current_torch_headers = _forwarding_rule("torch_headers", "AOTInductor's headers of the current torch runtime toolchain.")

current_stable_headers = _forwarding_rule("stable_headers", "The headers of torch's stable C++ API of the current torch runtime toolchain.")

current_cxx_headers = _forwarding_rule("cxx_headers", "The headers of libtorch's C++ API of the current torch runtime toolchain.")

current_pybind11 = _forwarding_rule("pybind11", "pybind11's headers of the current torch runtime toolchain.")

current_python_headers = _forwarding_rule("python_headers", "Python's headers of the current torch runtime toolchain.")
