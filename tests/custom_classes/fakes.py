"""The fake classes of classes.cc."""

from __future__ import annotations

import dataclasses
from typing import Any

import torch
from torch import Tensor
from torch._library.fake_class_registry import register_fake_class


@register_fake_class("tested_classes::Everything")
class FakeEverything:
    def __init__(self, **fields: Any) -> None:
        self.fields = fields

    @classmethod
    def __obj_unflatten__(cls, state: Any) -> FakeEverything:
        return cls(**dict(state))

    def add(
        self, x: Tensor, times: int, plus: float, twice: bool, word: str, bias: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        return torch.empty_like(x), torch.empty_like(self.fields["weights"])

    def count(self) -> int:
        return len(self.fields["words"])


@register_fake_class("tested_classes::Counted")
@dataclasses.dataclass
class FakeCounted:
    first: int

    @classmethod
    def __obj_unflatten__(cls, state: Any) -> FakeCounted:
        return cls(**dict(state))

    def alive(self, x: Tensor) -> Tensor:
        return torch.empty_like(x, dtype=torch.int64)
