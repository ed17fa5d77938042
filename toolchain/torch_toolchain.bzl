"""The two torch toolchains: what runs inside actions, and what compiled models are linked with.

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

Register it before `@torch_toolchains//:all`, which has the second: headers, libtorch and pybind11 of the same version, from
the lock of `torch.toolchain()`. These come out of torch's wheel, which is downloaded for them, but not unpacked for models on
the slim runtime. A `torch_runtime_toolchain` of your own replaces that too: its `torch_headers` are those that
`@torch_site//:torch_headers` lists, with the changes of `toolchain/private/header_patches.py`.
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
