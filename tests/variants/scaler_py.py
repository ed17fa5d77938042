"""A model whose methods are several programs each: by dtype, rank, size and value."""

import torch
from torch import Tensor, nn


class Scaler(nn.Module):
    calls: Tensor
    weight: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("weight", torch.arange(1.0, 5.0))
        self.register_buffer("calls", torch.zeros(1, dtype=torch.int64))

    def scale(self, x: Tensor, factor: float = 2.0) -> Tensor:
        self.calls.add_(1)
        return x * self.weight.to(x.dtype) * factor

    def count(self, sign: int = 1) -> dict[str, object]:
        counted = self.calls * sign
        return {"calls": counted} if sign > 0 else {"calls": counted, "note": "negated"}
