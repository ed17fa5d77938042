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
