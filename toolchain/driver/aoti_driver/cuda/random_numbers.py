"""Random numbers in kernels: Philox, as Triton has it, of seeds that the runtime draws.

Each random operator of a call gets a seed of 64 bits from the runtime's generator, which
manual_seed() seeds. An element's number follows from the seed and the element's place.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

from aoti_driver.torch_internals import patching

# Options that the user may change.
OPTIONS = {"fallback_random": False}


@contextlib.contextmanager
def seeded_by_the_runtime() -> Iterator[None]:
    """Inductor would draw the seeds on the device."""
    from torch._inductor import inductor_prims, ir, lowering

    def seeds(count: int, device: torch.device) -> Any:
        drawn = ir.TensorBox.create(ir.RandomSeeds(count, torch.device("cpu")))
        return lowering.to_device(drawn, device)

    operator = inductor_prims.seeds
    place = "torch._inductor.lowering:lowerings"
    with patching.entries_kept(place, [operator]) as lowerings:
        lowerings[operator] = seeds
        yield


def _bernoulli(x: Tensor, p: float = 0.5, *, generator: Any = None) -> Any:
    if generator is not None:
        return NotImplemented
    return (torch.rand_like(x, dtype=torch.float32) < p).to(x.dtype)


def _exponentials(x: Tensor) -> Tensor:
    """Never zero, by which a probability can't be divided."""
    return (-torch.log1p(-torch.rand_like(x))).clamp_min(2.0**-40)


def _multinomial(
    x: Tensor, num_samples: Any, replacement: bool = False, *, generator: Any = None
) -> Any:
    if generator is not None:
        return NotImplemented
    weights = x.float()
    if isinstance(num_samples, int) and num_samples == 1:
        return (weights / _exponentials(weights)).argmax(-1, keepdim=True)
    if not replacement:
        return torch.topk(weights / _exponentials(weights), num_samples).indices
    until = weights.cumsum(-1)
    total = until[..., -1:]
    points = torch.rand((*x.shape[:-1], num_samples), device=x.device) * total
    found = torch.searchsorted(until, points, right=True)
    # A product may be rounded up to the sum.
    return torch.minimum(found, torch.searchsorted(until, total))


def _randperm(n: Any, *, dtype: torch.dtype | None = None, device: Any = None, **_: Any) -> Tensor:
    every = torch.iinfo(torch.int64)
    keys = torch.randint(every.min, every.max, (n,), device=device)
    return keys.argsort().to(torch.int64 if dtype is None else dtype)


def _uniform(x: Tensor, low: Any = 0, high: Any = 1, *, generator: Any = None) -> Any:
    if generator is not None:
        return NotImplemented
    return torch.rand_like(x) * (high - low) + low


def _normal(
    shape: Any, *, mean: Any, std: Any, dtype: Any, device: Any, generator: Any = None, **_: Any
) -> Any:
    if generator is not None:
        return NotImplemented
    return torch.randn(shape, dtype=dtype, device=device) * std + mean


DECOMPOSITIONS: dict[str, Callable[..., Any]] = {
    "aten.bernoulli.p": _bernoulli,
    "aten.multinomial.default": _multinomial,
    "aten.randperm.default": _randperm,
    "aten.uniform.default": _uniform,
    "prims.normal.default": _normal,
}
