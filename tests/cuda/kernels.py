"""A kernel with a grid of two sizes, and with numbers and elements that need care."""

# mypy: ignore-errors

import triton
import triton.language as tl


@triton.jit
def masked_scale(x, mask, y, rows, columns, factor, negate, block: tl.constexpr):
    row = tl.program_id(1).to(tl.int64)
    places = tl.program_id(0) * block + tl.arange(0, block)
    used = places < columns
    values = tl.load(x + row * columns + places, mask=used, other=0.0) * factor
    kept = tl.load(mask + row * columns + places, mask=used, other=False)
    values = tl.where(negate, -values, values)
    tl.store(y + row * columns + places, tl.where(kept, values, 0.0), mask=used)


@triton.jit
def shifted(x, y, n, low, high, by, block: tl.constexpr):
    """Without a grid in its target, and with integers at the ends of their types."""
    places = tl.program_id(0) * block + tl.arange(0, block)
    used = places < n
    values = tl.load(x + places, mask=used, other=0.0) + by
    values += low.to(tl.float32) + (high >> 60).to(tl.float32)
    tl.store(y + places, values, mask=used)
