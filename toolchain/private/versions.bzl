"""The versions of torch for which the `torch` module extension can make a toolchain."""

DEFAULT_TORCH_VERSION = "2.13.0"

# torch version -> the Python versions for which torch has wheels.
TORCH_VERSIONS = {
    "2.13.0": ["3.10", "3.11", "3.12", "3.13", "3.14"],
}

# torch version -> the Triton that it was released with, which generates the code for CUDA.
TRITON_VERSIONS = {
    "2.13.0": "3.7.1",
}

def python_versions(torch_version):
    """The Python versions that torch has wheels for, the newest first.

    Args:
      torch_version: a torch that is known.

    Returns:
      list of strings
    """
    return sorted(TORCH_VERSIONS[torch_version], key = lambda version: int(version.split(".")[1]), reverse = True)
