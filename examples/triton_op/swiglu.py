"""The gated part of a feed-forward block as an operator: on GPUs it is a Triton kernel."""

# mypy: ignore-errors

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.library import triton_op, wrap_triton


@triton.jit
def swiglu_kernel(gate, up, out, count, block: tl.constexpr):
    places = tl.program_id(0).to(tl.int64) * block + tl.arange(0, block)
    used = places < count
    x = tl.load(gate + places, mask=used)
    tl.store(out + places, x * tl.sigmoid(x) * tl.load(up + places, mask=used), mask=used)


@triton_op("example_triton::swiglu", mutates_args={})
def swiglu(gate: Tensor, up: Tensor) -> Tensor:
    gate, up = gate.contiguous(), up.contiguous()
    out = torch.empty_like(gate)
    count = gate.numel()
    wrap_triton(swiglu_kernel)[(triton.cdiv(count, 256),)](gate, up, out, count, block=256)
    return out


@swiglu.register_kernel("cpu")
def _(gate: Tensor, up: Tensor) -> Tensor:
    return torch.nn.functional.silu(gate) * up
