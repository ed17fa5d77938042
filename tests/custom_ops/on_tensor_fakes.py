"""The fake kernel of on_tensor.cc's operator."""

import torch
from torch import Tensor


@torch.library.register_fake("on_tensor::squared")  # type: ignore[untyped-decorator]
def _(x: Tensor) -> Tensor:
    return torch.empty_like(x)
