"""The fake kernels of scale.cc's operators."""

import torch
from torch import Tensor


@torch.library.register_fake("tested::scale")  # type: ignore[untyped-decorator]
def _scale(
    x: Tensor, bias: Tensor | None, dims: list[int], mode: str, keep: bool = False
) -> tuple[Tensor, Tensor]:
    return torch.empty_like(x), x.amax(dims, keep)


@torch.library.register_fake("tested::increment")  # type: ignore[untyped-decorator]
def _increment(x: Tensor, by: int) -> None:
    return None
