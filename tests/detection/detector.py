"""A detection model's last steps, with torchvision's operators.

torchvision is not among the packages of this repository: its schemas are registered with kernels
that are written in PyTorch's operators.
"""

from __future__ import annotations

import detection
import torch
from torch import Tensor, nn

detection.register()


class Detector(nn.Module):
    """The features of the boxes that overlap with no better one."""

    def forward(self, boxes: Tensor, scores: Tensor, features: Tensor) -> tuple[Tensor, Tensor]:
        best = boxes[torch.ops.torchvision.nms(boxes, scores, 0.5)]
        rois = torch.cat([torch.zeros_like(best[:, :1]), best], 1)
        return best, torch.ops.torchvision.roi_align(features, rois, 1.0, 2, 2, 2, True)
