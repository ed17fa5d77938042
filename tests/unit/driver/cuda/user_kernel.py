"""An operator that is written with Triton, as users write them."""

# mypy: ignore-errors

import torch
import triton
import triton.language as tl
from torch.library import triton_op, wrap_triton


@triton.jit
def gated(x, gate, out, count, block: tl.constexpr):
    places = tl.program_id(0) * block + tl.arange(0, block)
    used = places < count
    value = tl.load(x + places, used)
    tl.store(out + places, value * tl.sigmoid(tl.load(gate + places, used)), used)


@triton_op("aoti_cuda_test::gate", mutates_args={})
def gate(x: torch.Tensor, gate: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    wrap_triton(gated)[(triton.cdiv(x.numel(), 512),)](x, gate, out, x.numel(), block=512)
    return out
