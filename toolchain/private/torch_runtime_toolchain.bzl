"""The target side: libtorch and the headers that compiled models are built with."""

load("@rules_cc//cc/common:cc_info.bzl", "CcInfo")

TorchRuntimeToolchainInfo = provider(
    doc = """What compiled models are built and linked with. Found as
`ctx.toolchains["@rules_aoti//toolchain:runtime_toolchain_type"].torch_runtime`.""",
    fields = {
        "libtorch": "CcInfo: libtorch's shared libraries and `torch_headers`. None where there is none for the target platform: models run on the slim runtime alone.",
        "pybind11": "CcInfo: pybind11's headers, or None where there are no `python_headers`.",
        "python_headers": "CcInfo: Python's C headers, for `python_version`. None where there are none for the target platform: models have no Python module.",
        "python_version": "string: the Python that extension modules are built for, such as `3.11`.",
        "torch_headers": "CcInfo: headers alone: AOTInductor's C ABI and what generated code includes, and the source of its container, `torch/_inductor/codegen/aoti_runtime/interface.cpp`.",
        "version": "string: torch's version. Models that another torch has exported are refused.",
    },
)

def _info(target):
    return target[CcInfo] if target else None

def _torch_runtime_toolchain_impl(ctx):
    if bool(ctx.attr.pybind11) != bool(ctx.attr.python_headers):
        fail("{}: give both pybind11 and python_headers, or neither".format(ctx.label))
    info = TorchRuntimeToolchainInfo(
        libtorch = _info(ctx.attr.libtorch),
        pybind11 = _info(ctx.attr.pybind11),
        python_headers = _info(ctx.attr.python_headers),
        python_version = ctx.attr.python_version,
        torch_headers = ctx.attr.torch_headers[CcInfo],
        version = ctx.attr.version,
    )
    return [platform_common.ToolchainInfo(torch_runtime = info), info]

def _cc(doc, mandatory = False):
    return attr.label(mandatory = mandatory, doc = doc, providers = [CcInfo])

torch_runtime_toolchain = rule(
    implementation = _torch_runtime_toolchain_impl,
    doc = "The torch toolchain of the target platform. Type: `@rules_aoti//toolchain:runtime_toolchain_type`.",
    attrs = {
        "libtorch": _cc("libtorch's shared libraries, with `torch_headers`. Without it models run on the slim runtime alone."),
        "pybind11": _cc("pybind11's headers. With `python_headers`, or neither: without them models have no Python module."),
        "python_headers": _cc("Python's C headers."),
        "python_version": attr.string(mandatory = True, doc = "The Python that the headers belong to, such as `3.11`."),
        "torch_headers": _cc("torch's headers and the source of its container (`torch/_inductor/codegen/aoti_runtime/interface.cpp`), without a library to link.", mandatory = True),
        "version": attr.string(mandatory = True, doc = "torch's version, such as `2.13.0`."),
    },
    provides = [platform_common.ToolchainInfo, TorchRuntimeToolchainInfo],
)
