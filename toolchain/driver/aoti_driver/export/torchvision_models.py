"""torchvision's detection models, without branches on the number of boxes.

Three functions of theirs look at how many boxes there are, which only a call knows. While a model
is exported they have other bodies, which compute the same for any number, none among them. The
bodies run among the names of the functions' own modules.
"""

# mypy: disable-error-code="name-defined"

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from types import CodeType, FunctionType
from typing import Any

import torch
from torch import Tensor


def _batched_nms(boxes: Tensor, scores: Tensor, idxs: Tensor, iou_threshold: float) -> Any:
    """Moves the boxes of each class to a place of their own."""
    largest = torch.cat([boxes.flatten(), boxes.new_zeros(1)]).max()
    places = idxs.to(boxes) * (largest + 1)
    return nms(boxes + places[:, None], scores, iou_threshold)  # noqa: F821


def _multiscale_roi_align(
    x_filtered: Any, boxes: Any, output_size: Any, sampling_ratio: int, scales: Any, mapper: Any
) -> Any:
    """It takes the number of boxes by size(), where torchvision takes it by len()."""
    rois = _convert_to_roi_format(boxes)  # noqa: F821
    if len(x_filtered) == 1:
        return roi_align(  # noqa: F821
            x_filtered[0], rois, output_size, scales[0], sampling_ratio
        )
    levels = mapper(boxes)
    result = x_filtered[0].new_zeros((rois.size(0), x_filtered[0].size(1), *output_size))
    for level, (features, scale) in enumerate(zip(x_filtered, scales)):
        rows = torch.where(levels == level)[0]
        part = roi_align(features, rois[rows], output_size, scale, sampling_ratio)  # noqa: F821
        result[rows] = part.to(result.dtype)
    return result


def _decode(self: Any, rel_codes: Tensor, boxes: list[Tensor]) -> Tensor:
    """It gives the result its shape without asking whether there are boxes."""
    every, codes = torch.cat(boxes), rel_codes.flatten(1)
    decoded: Tensor = self.decode_single(codes, every)
    return decoded.reshape(every.size(0), codes.size(1) // 4, 4)


# By the module and the name of the function.
_BODIES: dict[tuple[str, str], Any] = {
    ("torchvision.ops.boxes", "batched_nms"): _batched_nms,
    ("torchvision.ops.poolers", "_multiscale_roi_align"): _multiscale_roi_align,
    ("torchvision.models.detection._utils", "BoxCoder.decode"): _decode,
}


@contextlib.contextmanager
def without_branches() -> Iterator[None]:
    """Gives the functions these bodies, if the model's source has imported them.

    The functions themselves stay: a model may have taken them from their modules.
    """
    kept: list[tuple[FunctionType, CodeType]] = []
    try:
        for (module, path), body in _BODIES.items():
            found: Any = sys.modules.get(module)
            for name in path.split("."):
                found = getattr(found, name, None)
            if isinstance(found, FunctionType) and _arguments(found) == _arguments(body):
                kept.append((found, found.__code__))
                found.__code__ = body.__code__
        yield
    finally:
        for function, code in kept:
            function.__code__ = code


def _arguments(function: FunctionType) -> tuple[str, ...]:
    """Another release of torchvision may have others: its functions stay as they are."""
    code = function.__code__
    return code.co_varnames[: code.co_argcount]
