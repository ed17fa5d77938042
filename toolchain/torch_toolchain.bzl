"""The toolchains: torch inside of actions, what compiled models are linked with, and Triton for models for CUDA.

`torch.toolchain()` of `extensions.bzl` makes both. To export and compile models with a torch of your own, such as that of a
`pip.parse(hub_name = "my_pip")` of rules_python, or a hub of aspect_rules_py or rules_pycross, declare the first yourself:

```starlark
load("@rules_aoti//toolchain:torch_toolchain.bzl", "torch_toolchain")

torch_toolchain(
    name = "my_torch",
    packages = ["@my_pip//torch", "@my_pip//numpy", "@my_pip//sympy", "@my_pip//safetensors", "@my_pip//setuptools"],
    python = "@python_3_11//:python3",
    python_files = ["@python_3_11//:files"],
    python_version = "3.11",
    version = "2.13.0",
)

toolchain(
    name = "my_torch_toolchain",
    toolchain = ":my_torch",
    toolchain_type = "@rules_aoti//toolchain:toolchain_type",
)
```

Headers, libtorch and pybind11 come from the same packages, and nothing else is downloaded:

```starlark
load("@rules_aoti//toolchain:torch_toolchain.bzl", "torch_runtime_toolchain")

torch_runtime_toolchain(
    name = "my_torch_runtime",
    packages = ["@my_pip//torch"],
    python_headers = "@rules_python//python/cc:current_py_cc_headers",  # without it, models have no Python module
    python_version = "3.11",
    version = "2.13.0",
)

toolchain(
    name = "my_torch_runtime_toolchain",
    toolchain = ":my_torch_runtime",
    toolchain_type = "@rules_aoti//toolchain:runtime_toolchain_type",
)
```

Models with `device = "cuda"` need Triton too, for the same Python:

```starlark
load("@rules_aoti//toolchain:torch_toolchain.bzl", "triton_toolchain")

triton_toolchain(
    name = "my_triton",
    packages = ["@my_pip//triton"],
    python_version = "3.11",
    version = "3.7.1",
)

toolchain(
    name = "my_triton_toolchain",
    toolchain = ":my_triton",
    toolchain_type = "@rules_aoti//toolchain:triton_toolchain_type",
)
```

Register them before `@torch_toolchains//:all`. Where only the first is registered, headers and libtorch come from the torch of
`torch.toolchain()`, which is downloaded for them.
"""

load(
    "//toolchain/private:torch_runtime_toolchain.bzl",
    _TOOLCHAIN_TYPE = "TOOLCHAIN_TYPE",
    _TorchRuntimeToolchainInfo = "TorchRuntimeToolchainInfo",
    _torch_runtime_toolchain = "torch_runtime_toolchain",
)
load(
    "//toolchain/private:torch_toolchain.bzl",
    _TorchToolchainInfo = "TorchToolchainInfo",
    _add_site_arguments = "add_site_arguments",
    _torch_toolchain = "torch_toolchain",
)
load(
    "//toolchain/private:triton_toolchain.bzl",
    _TRITON_TOOLCHAIN_TYPE = "TRITON_TOOLCHAIN_TYPE",
    _TritonToolchainInfo = "TritonToolchainInfo",
    _triton_toolchain = "triton_toolchain",
)

RUNTIME_TOOLCHAIN_TYPE = Label("//toolchain:runtime_toolchain_type")
TOOLCHAIN_TYPE = _TOOLCHAIN_TYPE
TRITON_TOOLCHAIN_TYPE = _TRITON_TOOLCHAIN_TYPE
TorchRuntimeToolchainInfo = _TorchRuntimeToolchainInfo
TorchToolchainInfo = _TorchToolchainInfo
TritonToolchainInfo = _TritonToolchainInfo
add_site_arguments = _add_site_arguments
torch_runtime_toolchain = _torch_runtime_toolchain
torch_toolchain = _torch_toolchain
triton_toolchain = _triton_toolchain
