"""torchvision's operators as detection models call them.

They are registered by their schemas, with kernels written in PyTorch's operators, since PyPI's
torchvision does not load beside a torch for the CPU.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import detection
import torch
from aoti_driver.program import torchvision_operators

from tests.survey.registry import Architecture, Function, Sample, floats


def _call(function: Callable[..., Any], *args: torch.Tensor) -> Sample:
    detection.register()
    torchvision_operators.complete()
    return Sample(Function(function).eval(), args, batch=False)


def _boxes(count: int) -> torch.Tensor:
    corners = torch.rand(count, 2) * 4
    return torch.cat([corners, corners + 1 + torch.rand(count, 2)], 1)


def _suppressed(boxes: torch.Tensor, scores: torch.Tensor, labels: torch.Tensor) -> Any:
    """The best boxes of each label, as torchvision's batched_nms finds them."""
    apart = boxes + (labels * (boxes.max() + 1)).unsqueeze(1)
    kept = torch.ops.torchvision.nms(apart, scores, 0.3)[:10]
    return boxes[kept], scores[kept], labels[kept]


def _pooled(features: torch.Tensor, boxes: torch.Tensor) -> torch.Tensor:
    images = torch.zeros(boxes.shape[0], 1)
    rois = torch.cat([images, boxes], 1)
    return torch.ops.torchvision.roi_align(features, rois, 0.5, 3, 3, 2, True).flatten(1)  # type: ignore[no-any-return]


def _deformed(x: torch.Tensor, offset: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    mask, bias = torch.zeros(x.shape[0], 1), torch.ones(weight.shape[0])
    return torch.ops.torchvision.deform_conv2d(  # type: ignore[no-any-return]
        x, weight, offset, mask, bias, 1, 1, 1, 1, 1, 1, 1, 1, False
    )


_BUILDERS: dict[str, Callable[[], Sample]] = {
    "nms": lambda: _call(
        _suppressed, _boxes(20), torch.rand(20), torch.randint(3, (20,)).to(torch.float32)
    ),
    "roi_align": lambda: _call(_pooled, floats(2, 4, 8, 9), _boxes(5)),
    "deform_conv2d": lambda: _call(
        _deformed, floats(2, 4, 6, 7), floats(2, 18, 6, 7), floats(5, 4, 3, 3)
    ),
}

ARCHITECTURES = [Architecture(name, "torchvision", build) for name, build in _BUILDERS.items()]
