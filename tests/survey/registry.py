"""How the survey's architectures are declared."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import nn

# The size of the first dimension of inputs that may have any number of rows.
BATCH = 3


@dataclasses.dataclass(frozen=True)
class Sample:
    """A module with the arguments of one call.

    batch: whether the first dimension of each tensor argument of size BATCH is a batch, which the
      survey tries to export as a dynamic one.
    """

    module: nn.Module
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    batch: bool = True


@dataclasses.dataclass(frozen=True)
class Architecture:
    """package: what it is part of. options: Inductor's, beside the project's own.

    random: its results are random numbers, so that they can't be compared with another run's.
    """

    name: str
    package: str
    build: Callable[[], Sample]
    options: Mapping[str, str] = dataclasses.field(default_factory=dict)
    random: bool = False

    @property
    def id(self) -> str:
        return f"{self.package}/{self.name}"


class Function(nn.Module):
    """A module whose forward() is a function without parameters."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *args: Any) -> Any:
        return self.function(*args)


def floats(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(*shape, dtype=torch.float32).to(dtype)


def indices(high: int, *shape: int) -> torch.Tensor:
    """Integers in [0, high)."""
    return torch.randint(high, shape)
