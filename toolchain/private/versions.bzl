"""What the `torch` module extension can make a toolchain for."""

DEFAULT_TORCH_VERSION = "2.13.0"
DEFAULT_PYTHON_VERSION = "3.11"

# torch version -> the Python versions that its wheels exist for.
TORCH_VERSIONS = {
    "2.13.0": ["3.10", "3.11", "3.12", "3.13", "3.14"],
}
