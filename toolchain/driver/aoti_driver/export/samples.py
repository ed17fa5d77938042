"""Sample tensors, which are the same for the same spec, name, sizes and seed on every machine."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

import torch

from aoti_driver.contract.specs import TensorSpec


def make_inputs(
    specs: Mapping[str, TensorSpec], dims: Mapping[str, int], seed: int = 0
) -> dict[str, torch.Tensor]:
    """A tensor for each spec, for the given sizes of the free dims.

    Without a range of values, floats are standard normal, booleans random, and integers 0 or 1
    (which is usually valid as an index, mask or token). An input's values depend on its own name
    and the seed, not on the other inputs.
    """
    return {name: make_tensor(name, spec, dims, seed) for name, spec in specs.items()}


def make_tensor(
    name: str,
    spec: TensorSpec,
    dims: Mapping[str, int],
    seed: int = 0,
    sizes: Sequence[int] | None = None,
) -> torch.Tensor:
    """sizes: used in place of those that the dims give."""
    digest = hashlib.sha256(f"{seed}:{name}".encode()).digest()
    generator = torch.Generator().manual_seed(int.from_bytes(digest[:7], "little"))
    sizes = tuple(spec.sizes(dims) if sizes is None else sizes)
    dtype: torch.dtype = getattr(torch, spec.dtype)
    if dtype.is_complex:
        return torch.randn(sizes, generator=generator, dtype=dtype)
    if dtype.is_floating_point:
        if spec.values is None:
            return torch.randn(sizes, generator=generator, dtype=torch.float64).to(dtype)
        low, high = spec.values
        unit = torch.rand(sizes, generator=generator, dtype=torch.float64)
        return (low + unit * (high - low)).to(dtype).clamp_(low, high)
    low, high = (int(v) for v in spec.values or (0, 1))
    if high == 2**63 - 1:
        high -= 1  # randint's end is exclusive
    return torch.randint(low, high + 1, sizes, generator=generator, dtype=torch.int64).to(dtype)
