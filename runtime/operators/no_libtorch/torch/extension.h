#error \
    "This header is of libtorch's C++ API (TORCH_LIBRARY, at::Tensor), which the slim runtime does not have. Port the operators to PyTorch's stable C++ API (STABLE_TORCH_LIBRARY, torch::stable::Tensor), or give abi = \"libtorch\" to torch_custom_ops: then models that call them need libtorch. See docs/custom_ops.md."
