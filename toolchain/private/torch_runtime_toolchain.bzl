"""The toolchain for the target platform: libtorch and the headers that compiled models are built with."""

load("@rules_cc//cc:find_cc_toolchain.bzl", "use_cc_toolchain")
load("@rules_cc//cc/common:cc_common.bzl", "cc_common")
load("@rules_cc//cc/common:cc_info.bzl", "CcInfo")
load("@rules_python//python:py_info.bzl", "PyInfo")
load(":torch_package.bzl", "torch_package_cc")

TOOLCHAIN_TYPE = Label("//toolchain:toolchain_type")

TorchRuntimeToolchainInfo = provider(
    doc = """The libraries and headers that compiled models are built and linked with. Found as
`ctx.toolchains["@rules_aoti//toolchain:runtime_toolchain_type"].torch_runtime`.""",
    fields = {
        "cxx_headers": "CcInfo: the headers of libtorch's C++ API, for operators on at::Tensor. None if there are none.",
        "libtorch": "CcInfo: libtorch's shared libraries and `torch_headers`. None if there is none for the target platform: then models run only on the slim runtime.",
        "pybind11": "CcInfo: pybind11's headers, or None if there are no `python_headers`.",
        "python_headers": "CcInfo: Python's C headers, for `python_version`. None if there are none for the target platform: then models have no Python module.",
        "python_version": "string: the Python that extension modules are built for, such as `3.11`.",
        "stable_headers": "CcInfo: the headers of torch's stable C++ API, with `torch_headers`. None if there are none: then `torch_custom_ops` can't be built.",
        "torch_headers": "CcInfo: only headers: those of AOTInductor's C ABI and those that generated code includes; and the source of the container, `torch/_inductor/codegen/aoti_runtime/interface.cpp`.",
        "version": "string: torch's version. Models that were exported by another version are refused.",
    },
)

def _info(target):
    return target[CcInfo] if target else None

def _check(ctx):
    if bool(ctx.attr.packages) == bool(ctx.attr.torch_headers):
        fail("{}: set exactly one of `packages` (targets that hold torch) and `torch_headers`.".format(ctx.label))
    if ctx.attr.packages:
        for given in ["libtorch", "pybind11", "stable_headers"]:
            if getattr(ctx.attr, given):
                fail("{}: `{}` comes from `packages`. Set one of them.".format(ctx.label, given))
        if not ctx.toolchains[TOOLCHAIN_TYPE]:
            fail(("{}: `packages` needs an interpreter, and no toolchain of type {} is registered for this machine. " +
                  "Declare and register a `torch_toolchain` too.").format(ctx.label, TOOLCHAIN_TYPE))
    elif bool(ctx.attr.pybind11) != bool(ctx.attr.python_headers):
        fail("{}: give both pybind11 and python_headers, or neither".format(ctx.label))

def _torch_runtime_toolchain_impl(ctx):
    _check(ctx)
    python_headers = _info(ctx.attr.python_headers)
    if ctx.attr.packages:
        cc = torch_package_cc(ctx, ctx.toolchains[TOOLCHAIN_TYPE].torch)
        pybind11 = cc_common.merge_cc_infos(cc_infos = [cc.pybind11, python_headers]) if python_headers else None
    else:
        cc = struct(
            headers = ctx.attr.torch_headers[CcInfo],
            libtorch = _info(ctx.attr.libtorch),
            stable_headers = _info(ctx.attr.stable_headers),
        )
        pybind11 = _info(ctx.attr.pybind11)
    info = TorchRuntimeToolchainInfo(
        cxx_headers = _info(ctx.attr.cxx_headers),
        libtorch = cc.libtorch,
        pybind11 = pybind11,
        python_headers = python_headers,
        python_version = ctx.attr.python_version,
        stable_headers = cc.stable_headers,
        torch_headers = cc.headers,
        version = ctx.attr.version,
    )
    return [platform_common.ToolchainInfo(torch_runtime = info), info]

def _cc(doc):
    return attr.label(doc = doc, providers = [CcInfo])

torch_runtime_toolchain = rule(
    implementation = _torch_runtime_toolchain_impl,
    doc = "The torch toolchain of the target platform. Type: `@rules_aoti//toolchain:runtime_toolchain_type`.",
    attrs = {
        "cxx_headers": _cc("The headers of libtorch's C++ API (`torch/library.h`), for `torch_custom_ops(abi = \"libtorch\")`."),
        "libtorch": _cc("libtorch's shared libraries, with `torch_headers`. Without it, models run only on the slim runtime."),
        "packages": attr.label_list(
            doc = """`py_library`-like targets that contain torch, such as `@my_pip//torch`: headers, libtorch and pybind11
are taken from them, in place of `torch_headers`, `stable_headers`, `libtorch` and `pybind11`, and nothing is downloaded. If the package is a
single directory, as in aspect_rules_py and rules_pycross, libtorch is left out: then models run only on the slim runtime.""",
            providers = [PyInfo],
        ),
        "pybind11": _cc("pybind11's headers. Set both this and `python_headers`, or neither: without them, models have no Python module."),
        "python_headers": _cc("Python's C headers."),
        "python_version": attr.string(mandatory = True, doc = "The Python that the headers belong to, such as `3.11`."),
        "stable_headers": _cc("The headers of torch's stable C++ API (`torch/csrc/stable/ops.h`), for `torch_custom_ops`, with `torch_headers`."),
        "torch_headers": _cc("torch's headers and the source of its container (`torch/_inductor/codegen/aoti_runtime/interface.cpp`), without a library to link. Alternatively, set `packages`."),
        "version": attr.string(mandatory = True, doc = "torch's version, such as `2.13.0`."),
        "_laid_out_by": attr.label(
            default = ":torch_headers.py",
            allow_single_file = True,
            cfg = "exec",
        ),
        "_scripts": attr.label_list(
            default = [":header_closure.py", ":header_patches.py"],
            allow_files = True,
            cfg = "exec",
        ),
    },
    fragments = ["cpp"],
    provides = [platform_common.ToolchainInfo, TorchRuntimeToolchainInfo],
    toolchains = [config_common.toolchain_type(TOOLCHAIN_TYPE, mandatory = False)] + use_cc_toolchain(mandatory = False),
)
