"""Packs weights of convolutions at build time into the layouts that the slim runtime reads.

The layouts do not depend on the CPU that will run the model: see runtime/slim/conv/pack.h.
"""

from __future__ import annotations

import torch

from aoti_driver.packing.packed_format import CONV_BLOCK

_PLAIN, _TRANSPOSED, _DEPTHWISE = "conv_f32", "conv_transposed_f32", "conv_depthwise_f32"
_PAIRS = "conv_bf16"
KINDS = (_PLAIN, _TRANSPOSED, _DEPTHWISE, _PAIRS)

# Sizes of groups that are treated as depthwise ones: see ConvProblem::depthwise in
# runtime/slim/conv/conv.h.
_SMALL_GROUPS = (1, 2, 4, 8)

_DTYPES = (torch.float32, torch.bfloat16, torch.float16)


def kind_of(weight: torch.Tensor, groups: int, transposed: bool) -> str | None:
    """The layout of the weight that a convolution reads fastest; None: the plain weight.

    Stride, padding and dilation do not matter. A weight can be packed for only one kind and one
    number of groups.
    """
    if weight.dtype not in _DTYPES or weight.dim() not in (3, 4, 5) or 0 in weight.shape:
        return None
    if transposed:
        return _TRANSPOSED
    channels = weight.shape[1]
    even = weight.shape[0] == groups * channels and channels in _SMALL_GROUPS
    if groups > 1 and even:
        return _DEPTHWISE
    return _PAIRS if weight.dtype == torch.bfloat16 and channels % 2 == 0 else _PLAIN


def pack(kind: str, tensor: torch.Tensor, groups: int) -> torch.Tensor:
    """The bytes of the weight ``tensor`` in the layout ``kind``: in most layouts as float32,
    whatever its dtype.
    """
    if kind not in KINDS:
        raise ValueError(f"no layout {kind!r}: there are {', '.join(KINDS)}")
    if tensor.dtype not in _DTYPES or tensor.dim() not in (3, 4, 5):
        raise ValueError(
            f"{kind} is for weights of 3 to 5 dims of a float type of at most 32 bits, "
            f"not {tensor.dtype} of {tensor.dim()} dims"
        )
    if tensor.shape[0] % groups:
        raise ValueError(f"{groups} groups do not divide a weight of shape {list(tensor.shape)}")
    if kind == _PAIRS and (tensor.dtype != torch.bfloat16 or tensor.shape[1] % 2):
        raise ValueError(
            f"{kind} is for weights of bfloat16 with an even number of input channels, not "
            f"{tensor.dtype} of shape {list(tensor.shape)}"
        )
    weight = tensor.detach().flatten(2)
    weight = weight if kind == _PAIRS else weight.float()
    if kind == _DEPTHWISE:
        packed = _to_blocks(weight.permute(2, 1, 0))
    else:
        # [group, output channel, input channel, tap]
        grouped = weight.reshape(groups, -1, *weight.shape[1:])
        if kind == _TRANSPOSED:
            grouped = grouped.transpose(1, 2)
        padded = _to_blocks(grouped.permute(0, 3, 2, 1))
        # [group, tap, input channel, block, lane]
        blocks = padded.reshape(*padded.shape[:3], -1, CONV_BLOCK)
        packed = blocks.permute(0, 3, 1, 2, 4)
        if kind == _PAIRS:  # the two channels of a pair, for each lane
            packed = packed.reshape(*packed.shape[:3], -1, 2, CONV_BLOCK).transpose(-1, -2)
    return packed.contiguous().view(torch.uint8).flatten()


def _to_blocks(values: torch.Tensor) -> torch.Tensor:
    """Adds zeros after the last dim, up to a whole number of blocks."""
    return torch.nn.functional.pad(values, (0, -values.shape[-1] % CONV_BLOCK))
