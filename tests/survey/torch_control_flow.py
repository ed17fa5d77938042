"""Control flow of torch: branches and loops that stay in the graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch._higher_order_ops import associative_scan, scan, while_loop

from tests.survey.registry import BATCH, Architecture, Function, Sample, floats


def _call(function: Callable[..., Any], *args: Any, batch: bool = True) -> Sample:
    return Sample(Function(function).eval(), args, batch=batch)


def _fixed(function: Callable[..., Any], *args: Any) -> Sample:
    return _call(function, *args, batch=False)


def _x(*shape: int) -> torch.Tensor:
    return floats(BATCH, *(shape or (5, 8)))


def _cond(x: torch.Tensor) -> Any:
    return torch.cond(x.sum() > 0, lambda x: x.sin() + 1, lambda x: x.cos(), [x])


class _CondLinear(nn.Module):
    """Branches that own parameters, call matrix products, and return two results."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(8, 8), nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> Any:
        return torch.cond(
            x.mean() > 0,
            lambda x: (self.a(x), x.sum(0)),
            lambda x: (self.b(x).relu(), x.amax(0)),
            [x],
        )


def _cond_nested(x: torch.Tensor) -> Any:
    def positive(x: torch.Tensor) -> Any:
        return torch.cond(x.max() > 1, lambda x: x * 2, lambda x: x * 3, [x])

    return torch.cond(x.sum() > 0, positive, lambda x: x - 1, [x])


def _while(x: torch.Tensor) -> Any:
    def body(i: torch.Tensor, x: torch.Tensor) -> Any:
        return i + 1, torch.tanh(x * 1.5)

    return while_loop(  # type: ignore[no-untyped-call]
        lambda i, _: i < 5, body, (torch.zeros((), dtype=torch.int64), x)
    )


class _WhileLinear(nn.Module):
    """A loop whose number of rounds depends on the data, around a matrix product."""

    def __init__(self) -> None:
        super().__init__()
        self.step = nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> Any:
        def body(n: torch.Tensor, x: torch.Tensor) -> Any:
            return n + 1, self.step(x) * 0.5

        return while_loop(  # type: ignore[no-untyped-call]
            lambda n, x: (x.norm() > 0.5) & (n < 20),
            body,
            (torch.zeros((), dtype=torch.int64), x),
        )


def _scan(x: torch.Tensor) -> Any:
    return scan(lambda carry, x: (carry + x, carry * x), torch.zeros(5, 8), x)


def _scan_recurrent(x: torch.Tensor) -> Any:
    weight = torch.eye(8) * 0.5

    def step(carry: torch.Tensor, x: torch.Tensor) -> Any:
        new = torch.tanh(carry @ weight + x)
        return new, new.clone()

    return scan(step, torch.zeros(5, 8), x)


def _associative_scan(x: torch.Tensor) -> Any:
    return associative_scan(lambda a, b: a + b, x, 0, combine_mode="generic")


def _map(x: torch.Tensor, y: torch.Tensor) -> Any:
    from torch._higher_order_ops.map import map as torch_map

    return torch_map(lambda x, y: x.sin() + y, x, y)  # type: ignore[arg-type]


_BUILDERS: dict[str, Callable[[], Sample]] = {
    "cond": lambda: _call(_cond, _x()),
    "cond_linear": lambda: Sample(_CondLinear().eval(), (_x(8),)),
    "cond_nested": lambda: _call(_cond_nested, _x()),
    "while_loop": lambda: _call(_while, _x()),
    "while_loop_linear": lambda: Sample(_WhileLinear().eval(), (_x(8),)),
    "scan": lambda: _fixed(_scan, _x()),
    "scan_recurrent": lambda: _fixed(_scan_recurrent, _x()),
    "associative_scan": lambda: _fixed(_associative_scan, _x()),
    "map": lambda: _fixed(_map, _x(), floats(5, 8)),
}

ARCHITECTURES = [Architecture(name, "torch", build) for name, build in _BUILDERS.items()]
