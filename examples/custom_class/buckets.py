"""What tracing must know of the class in buckets.cc: its arguments, and what its methods return."""

import dataclasses
from typing import Any

import torch
from torch import Tensor
from torch._library.fake_class_registry import register_fake_class


@register_fake_class("example::Buckets")
@dataclasses.dataclass
class FakeBuckets:
    edges: Tensor
    outside: int

    @classmethod
    def __obj_unflatten__(cls, state: Any) -> "FakeBuckets":
        return cls(**dict(state))

    def find(self, x: Tensor) -> Tensor:
        return torch.empty_like(x, dtype=torch.int64)
