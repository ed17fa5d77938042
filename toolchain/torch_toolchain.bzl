"""The two torch toolchains: what runs inside actions, and what compiled models are linked with.

`torch.toolchain()` of `extensions.bzl` makes both. To bring a torch of your own, such as `@pypi//torch` of rules_python,
declare them yourself:

```starlark
load("@rules_aoti//toolchain:torch_toolchain.bzl", "torch_toolchain")

torch_toolchain(
    name = "my_torch",
    packages = ["@pypi//torch", "@pypi//numpy", "@pypi//sympy", "@pypi//safetensors", "@pypi//setuptools"],
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
"""

load(
    "//toolchain/private:torch_runtime_toolchain.bzl",
    _TorchRuntimeToolchainInfo = "TorchRuntimeToolchainInfo",
    _torch_runtime_toolchain = "torch_runtime_toolchain",
)
load(
    "//toolchain/private:torch_toolchain.bzl",
    _TorchToolchainInfo = "TorchToolchainInfo",
    _add_site_arguments = "add_site_arguments",
    _torch_toolchain = "torch_toolchain",
)

RUNTIME_TOOLCHAIN_TYPE = Label("//toolchain:runtime_toolchain_type")
TOOLCHAIN_TYPE = Label("//toolchain:toolchain_type")
TorchRuntimeToolchainInfo = _TorchRuntimeToolchainInfo
TorchToolchainInfo = _TorchToolchainInfo
add_site_arguments = _add_site_arguments
torch_runtime_toolchain = _torch_runtime_toolchain
torch_toolchain = _torch_toolchain
