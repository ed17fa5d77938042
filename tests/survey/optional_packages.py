"""What the packages of models need to be imported beside a CPU build of torch."""

from __future__ import annotations

import torch

_SCHEMA = "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"


def declare_torchvision() -> None:
    """torchvision's wheel is built for CUDA: its operators don't load here, nor does anything here
    call them, but its import fails on their names."""
    for name in ("nms", "qnms"):
        if not hasattr(torch.ops.torchvision, name):
            torch.library.define(f"torchvision::{name}", _SCHEMA)
