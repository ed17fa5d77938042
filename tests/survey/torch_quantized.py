"""Linear layers with weights of 8 and 4 bits."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn

from tests.survey.registry import BATCH, Architecture, Function, Sample, floats


class _Int8Linear(nn.Module):
    weight: torch.Tensor
    scales: torch.Tensor

    def __init__(self, dtype: torch.dtype) -> None:
        super().__init__()
        self.register_buffer("weight", torch.randint(-127, 128, (16, 32), dtype=torch.int8))
        self.register_buffer("scales", torch.rand(16).to(dtype))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.ops.aten._weight_int8pack_mm(x, self.weight, self.scales)  # type: ignore[no-any-return]


class _Int8LinearInTorch(nn.Module):
    """The same as models write it: dequantize, then multiply."""

    weight: torch.Tensor
    scales: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("weight", torch.randint(-127, 128, (16, 32), dtype=torch.int8))
        self.register_buffer("scales", torch.rand(16))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.linear(x, self.weight.to(x.dtype)) * self.scales


class _Int4Linear(nn.Module):
    weight: torch.Tensor
    scales: torch.Tensor

    def __init__(self, dtype: torch.dtype) -> None:
        super().__init__()
        weight = torch.randint(0, 16, (32, 64), dtype=torch.int32)
        packed = torch.ops.aten._convert_weight_to_int4pack_for_cpu(weight, 1)
        self.register_buffer("weight", packed)
        self.register_buffer("scales", torch.rand(2, 32, 2).to(dtype))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.ops.aten._weight_int4pack_mm_for_cpu(x, self.weight, 32, self.scales)  # type: ignore[no-any-return]


class _DynamicInt4Linear(nn.Module):
    """Weights of 4 bits, and activations of 8 bits whose scales each call computes."""

    packed: torch.Tensor

    def __init__(self, group: int) -> None:
        super().__init__()
        self.group = group
        weight = torch.randint(0, 256, (16, 32), dtype=torch.uint8)
        scales = torch.rand(16, 64 // group)
        pack = torch.ops.aten._dyn_quant_pack_4bit_weight
        self.register_buffer("packed", pack(weight, scales, torch.rand(16), group, 64, 16))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.ops.aten._dyn_quant_matmul_4bit(x, self.packed, self.group, 64, 16)  # type: ignore[no-any-return]


class _DynamicInt8Linear(nn.Module):
    """Activations quantized as they come: an integer matrix product."""

    weight: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("weight", torch.randint(-127, 128, (32, 16), dtype=torch.int8))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        scale = x.abs().amax() / 127
        quantized = (x / scale).round().to(torch.int8)
        return torch._int_mm(quantized, self.weight) * scale


_BUILDERS: dict[str, Callable[[], Sample]] = {
    "int8_linear": lambda: Sample(_Int8Linear(torch.bfloat16), (floats(BATCH, 32).bfloat16(),)),
    "int8_linear_float32": lambda: Sample(_Int8Linear(torch.float32), (floats(BATCH, 32),)),
    "int8_linear_dequantized": lambda: Sample(_Int8LinearInTorch(), (floats(BATCH, 32),)),
    "int4_linear": lambda: Sample(_Int4Linear(torch.bfloat16), (floats(BATCH, 64).bfloat16(),)),
    "int4_linear_float32": lambda: Sample(_Int4Linear(torch.float32), (floats(BATCH, 64),)),
    "int4_dynamic_linear": lambda: Sample(_DynamicInt4Linear(32), (floats(BATCH, 64),)),
    "int4_dynamic_linear_bfloat16": lambda: Sample(
        _DynamicInt4Linear(64), (floats(BATCH, 64).bfloat16(),)
    ),
    "int4_packing": lambda: Sample(
        Function(
            lambda w, s: torch.ops.aten._dyn_quant_pack_4bit_weight(w, s, None, 32, 64, 16)
        ).eval(),
        (torch.randint(0, 256, (16, 32), dtype=torch.uint8), torch.rand(16, 2)),
        batch=False,
    ),
    "int8_dynamic_linear": lambda: Sample(_DynamicInt8Linear(), (floats(BATCH, 32),), batch=False),
}

ARCHITECTURES = [Architecture(name, "torch", build) for name, build in _BUILDERS.items()]
