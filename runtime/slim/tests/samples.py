"""Tensors for tests: small values with many ties, special ones, and awkward layouts."""

from __future__ import annotations

import math

import torch

REAL = [
    torch.uint8,
    torch.int8,
    torch.int16,
    torch.int32,
    torch.int64,
    torch.float16,
    torch.bfloat16,
    torch.float32,
    torch.float64,
    torch.bool,
]
LAYOUTS = ["plain", "transposed", "sliced", "expanded"]


def make(
    shape: tuple[int, ...],
    dtype: torch.dtype,
    layout: str = "plain",
    *,
    seed: int = 0,
    special: bool = True,
) -> torch.Tensor:
    """A tensor of this shape; an expanded one repeats its first row.

    special: with NaNs of both signs, infinities and zeros of both signs where the dtype has them.
    """
    own = shape
    if layout == "transposed":
        own = shape[::-1]
    elif layout == "sliced":
        own = tuple(2 * n for n in shape)
    elif layout == "expanded" and shape and shape[0]:
        own = (1, *shape[1:])
    generator = torch.Generator().manual_seed(seed)
    values = torch.randint(-9, 9, own, generator=generator)
    x = (values % 2 == 0) if dtype == torch.bool else values.to(dtype)
    if dtype.is_complex:
        imaginary = torch.randint(-9, 9, own, generator=generator)
        x = torch.complex(values.double() / 4, imaginary.double() / 4).to(dtype)
    elif dtype.is_floating_point:
        x = x / 4
        flat = x.view(-1)
        if special and x.numel():
            for i, value in enumerate((math.nan, math.inf, -math.inf, -0.0, 0.0, -math.nan)):
                flat[(7 * i + seed) % flat.numel()] = value
    if layout == "transposed":
        return x.permute(tuple(reversed(range(x.dim()))))
    if layout == "sliced":
        return x[tuple(slice(None, None, 2) for _ in shape)]
    return x.expand(shape)
