"""The Python side of a model or of operators, from files and py_library targets."""

load("@rules_python//python:py_info.bzl", "PyInfo")
load("//rules:providers.bzl", "TorchModuleInfo")
load(":python_sources.bzl", "python_sources")

def module_info(files, deps, weights = [], operator_modules = [], triton_modules = [], triton = None):
    """What files and Python targets say together.

    Args:
        files: list of File, beside those of `deps`.
        deps: list of Target with PyInfo.
        weights: list of File, as TorchModuleInfo has them.
        operator_modules: list of File, as TorchModuleInfo has them.
        triton_modules: list of File, as TorchModuleInfo has them.
        triton: TritonToolchainInfo or None.

    Returns:
        TorchModuleInfo
    """
    return TorchModuleInfo(
        files = depset(
            files,
            transitive = [sources for dep in deps for sources in python_sources(dep[PyInfo])] +
                         [dep[DefaultInfo].default_runfiles.files for dep in deps],
        ),
        imports = depset(transitive = [dep[PyInfo].imports for dep in deps]),
        weights = weights,
        operators = [],
        operator_modules = operator_modules,
        triton_modules = triton_modules,
        triton = triton,
    )
