"""torch's headers and libraries, taken from a target that contains torch."""

load("@rules_cc//cc:find_cc_toolchain.bzl", "find_cc_toolchain")
load("@rules_cc//cc/common:cc_common.bzl", "cc_common")
load("@rules_cc//cc/common:cc_info.bzl", "CcInfo")
load(":package_site.bzl", "add_site", "site_of_packages")

# The libraries that a program on libtorch loads. The name of OpenMP's library contains a digest.
_LIBRARIES = ["libc10.so", "libtorch.so", "libtorch_cpu.so"]
_OPENMP = "libgomp"

def _headers_and_pybind11(ctx, site, torch):
    """Runs the action that extracts them. Returns three directories: torch's C ABI, its stable C++, pybind11."""
    headers = ctx.actions.declare_directory(ctx.label.name + ".torch_headers")
    stable = ctx.actions.declare_directory(ctx.label.name + ".stable_headers")
    pybind11 = ctx.actions.declare_directory(ctx.label.name + ".pybind11_headers")
    flags = ctx.actions.args()
    flags.add_all(["-S", "-s", "-B"])
    flags.add(ctx.file._laid_out_by)
    args = ctx.actions.args()
    args.add(str(ctx.label), format = "--target=%s")
    args.add(ctx.attr.version, format = "--version=%s")
    args.add_all([headers], expand_directories = False, format_each = "--out=%s")
    args.add_all([stable], expand_directories = False, format_each = "--stable=%s")
    args.add_all([pybind11], expand_directories = False, format_each = "--pybind11=%s")
    add_site(args, site)
    python = [torch.python] if type(torch.python) == "File" else []
    ctx.actions.run(
        mnemonic = "TorchHeaders",
        executable = torch.python,
        arguments = [flags, args],
        inputs = depset(
            python + [file for file in site.files.to_list() if _is_read(file)],
            transitive = [torch.python_files],
        ),
        tools = [ctx.file._laid_out_by] + ctx.files._scripts,
        outputs = [headers, stable, pybind11],
        progress_message = "Taking headers out of torch's package for %{label}",
        toolchain = None,
    )
    return headers, stable, pybind11

def _is_read(file):
    path = file.path
    return file.is_directory or "/torch/include/" in path or "/torch/_inductor/codegen/" in path or path.endswith("/torch/version.py")

def _headers_info(folder):
    return CcInfo(compilation_context = cc_common.create_compilation_context(
        headers = depset([folder]),
        system_includes = depset([folder.path]),
    ))

def _libtorch(ctx, site):
    """The CcInfo of libtorch's libraries; None if the package is one directory, whose files are not known during analysis."""
    libraries = [
        file
        for file in site.files.to_list()
        if "/torch/lib/" in file.path and (file.basename in _LIBRARIES or file.basename.startswith(_OPENMP))
    ]
    if not libraries:
        return None
    toolchain = find_cc_toolchain(ctx)
    features = cc_common.configure_features(
        ctx = ctx,
        cc_toolchain = toolchain,
        requested_features = ctx.features,
        unsupported_features = ctx.disabled_features,
    )
    to_link = [
        cc_common.create_library_to_link(
            actions = ctx.actions,
            feature_configuration = features,
            cc_toolchain = toolchain,
            dynamic_library = library,
        )
        for library in libraries
    ]
    linker_input = cc_common.create_linker_input(owner = ctx.label, libraries = depset(to_link))
    return CcInfo(linking_context = cc_common.create_linking_context(linker_inputs = depset([linker_input])))

def torch_package_cc(ctx, torch):
    """The C++ side of the torch that `ctx.attr.packages` hold.

    Args:
      ctx: the context of `torch_runtime_toolchain`.
      torch: the TorchToolchainInfo, whose interpreter takes the headers out.

    Returns:
      struct(headers, libtorch, pybind11, stable_headers): CcInfo; `libtorch` is None where the package is one directory
    """
    site = site_of_packages(ctx, ctx.attr.packages)
    headers, stable, pybind11 = _headers_and_pybind11(ctx, site, torch)
    headers = _headers_info(headers)
    libraries = _libtorch(ctx, site)
    return struct(
        headers = headers,
        libtorch = cc_common.merge_cc_infos(cc_infos = [headers, libraries]) if libraries else None,
        pybind11 = _headers_info(pybind11),
        stable_headers = cc_common.merge_cc_infos(cc_infos = [_headers_info(stable), headers]),
    )
