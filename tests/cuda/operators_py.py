"""All operators of operator_cases.py that have kernels for a dtype, in one model."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn
from torch.utils import _pytree as pytree

from tests.cuda.operator_cases import CASES, RANDOM, runs


class Operators(nn.Module):
    dtype = ""

    def __init__(self) -> None:
        super().__init__()
        self.names = runs(self.dtype)

    def results(self, name: str, x: Tensor) -> list[Tensor]:
        function = CASES[name] if name in CASES else RANDOM[name][0]
        results: list[Tensor] = pytree.tree_leaves(function(x))
        return results

    def forward(self, x: Tensor) -> tuple[Any, ...]:
        return tuple(result for name in self.names for result in self.results(name, x))


class Float32(Operators):
    dtype = "float32"


class Bfloat16(Operators):
    dtype = "bfloat16"


class Float16(Operators):
    dtype = "float16"


class Float64(Operators):
    dtype = "float64"


class Int64(Operators):
    dtype = "int64"


class Int32(Operators):
    dtype = "int32"
