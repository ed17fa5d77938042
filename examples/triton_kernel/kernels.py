"""A kernel that scales each row of a matrix to the length 1."""

# mypy: ignore-errors

import triton
import triton.language as tl


@triton.jit
def normalize(x, y, rows, columns, epsilon, block: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    places = tl.arange(0, block)
    used = places < columns
    values = tl.load(x + row * columns + places, mask=used, other=0.0)
    length = tl.sqrt(tl.sum(values * values, axis=0))
    tl.store(y + row * columns + places, values / tl.maximum(length, epsilon), mask=used)
