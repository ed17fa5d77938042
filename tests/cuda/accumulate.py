"""An operator for GPUs alone, which writes to its argument and is to be tuned."""

# mypy: ignore-errors

import triton
import triton.language as tl
from torch import Tensor
from torch.library import triton_op, wrap_triton


@triton.jit
def doubled(x):
    return x + x


@triton.autotune([triton.Config({"block": 16}, num_warps=1), triton.Config({"block": 64})], key=[])
@triton.jit
def accumulate_kernel(total, x, count, factor, block: tl.constexpr):
    places = tl.program_id(0) * block + tl.arange(0, block)
    used = places < count
    before = tl.load(total + places, mask=used)
    tl.store(total + places, before + doubled(tl.load(x + places, mask=used)) * factor, mask=used)


@triton_op("tests_cuda::accumulate", mutates_args={"total"})
def accumulate(total: Tensor, x: Tensor, factor: float) -> None:
    count = x.numel()

    def grid(tile):
        return (triton.cdiv(count, tile["block"]),)

    wrap_triton(accumulate_kernel)[grid](total, x, count, factor)
