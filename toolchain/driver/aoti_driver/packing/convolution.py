"""Packs weights of convolutions at build time into the layouts that the slim runtime reads.

The layouts do not depend on the CPU that will run the model: see runtime/slim/conv/pack.h.
"""

from __future__ import annotations

import torch

from aoti_driver.packing.packed_format import CONV_BLOCK

_PLAIN, _TRANSPOSED, _DEPTHWISE = "conv_f32", "conv_transposed_f32", "conv_depthwise_f32"
_PAIRS, _TRANSPOSED_PAIRS = "conv_bf16", "conv_transposed_bf16"
KINDS = (_PLAIN, _TRANSPOSED, _DEPTHWISE, _PAIRS, _TRANSPOSED_PAIRS)

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
        return _TRANSPOSED_PAIRS if _suits_pairs(weight, groups, transposed) else _TRANSPOSED
    channels = weight.shape[1]
    even = weight.shape[0] == groups * channels and channels in _SMALL_GROUPS
    if groups > 1 and even:
        return _DEPTHWISE
    return _PAIRS if _suits_pairs(weight, groups, transposed) else _PLAIN


def _suits_pairs(weight: torch.Tensor, groups: int, transposed: bool) -> bool:
    channels = weight.shape[0] // groups if transposed else weight.shape[1]
    is_paired = channels % 2 == 0 or (groups == 1 and channels > 1)
    return weight.dtype == torch.bfloat16 and is_paired


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
    in_pairs = kind in (_PAIRS, _TRANSPOSED_PAIRS)
    transposed = kind in (_TRANSPOSED, _TRANSPOSED_PAIRS)
    if in_pairs and not _suits_pairs(tensor, groups, transposed):
        raise ValueError(
            f"{kind} is for weights of bfloat16 with an even number of input channels in a group, "
            f"or one group of more than one, not {tensor.dtype} of shape {list(tensor.shape)} in "
            f"{groups} groups"
        )
    weight = tensor.detach().flatten(2)
    weight = weight if in_pairs else weight.float()
    if kind == _DEPTHWISE:
        packed = _to_blocks(weight.permute(2, 1, 0))
    else:
        # [group, output channel, input channel, tap]
        grouped = weight.reshape(groups, -1, *weight.shape[1:])
        if transposed:
            grouped = grouped.transpose(1, 2)
        if in_pairs:  # an odd number of input channels is followed by zeros
            grouped = torch.nn.functional.pad(grouped, (0, 0, 0, grouped.shape[2] % 2))
        padded = _to_blocks(grouped.permute(0, 3, 2, 1))
        # [group, tap, input channel, block, lane]
        blocks = padded.reshape(*padded.shape[:3], -1, CONV_BLOCK)
        packed = blocks.permute(0, 3, 1, 2, 4)
        if in_pairs:  # the two channels of a pair, for each lane
            packed = packed.reshape(*packed.shape[:3], -1, 2, CONV_BLOCK).transpose(-1, -2)
    return packed.contiguous().view(torch.uint8).flatten()


def _to_blocks(values: torch.Tensor) -> torch.Tensor:
    """Adds zeros after the last dim, up to a whole number of blocks."""
    return torch.nn.functional.pad(values, (0, -values.shape[-1] % CONV_BLOCK))
