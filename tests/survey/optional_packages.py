"""What the packages of models need to be imported beside a CPU build of torch."""

from __future__ import annotations

import functools
import importlib.util
import re
import sys
from pathlib import Path

import torch

_SCHEMA = "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"


def cuda_torchvision() -> str | None:
    """The version of a torchvision for CUDA beside a torch for the CPU; None if they fit."""
    spec = importlib.util.find_spec("torchvision")
    if spec is None or spec.origin is None or torch.version.cuda:
        return None
    text = Path(spec.origin).with_name("version.py").read_text(encoding="utf-8")
    match = re.search(r"__version__ = '([^']*\+cu[^']*)'", text)
    return match[1] if match else None


@functools.cache
def declare_torchvision() -> None:
    """Makes a torchvision for CUDA importable, and says so: PyPI has no other.

    Its compiled operators aren't there. The architectures here call none of them, but its import
    fails on two names.
    """
    if version := cuda_torchvision():
        print(
            f"torchvision {version} is a build for CUDA beside torch {torch.__version__}: its "
            "operators are declared by name, and a model that calls one fails",
            file=sys.stderr,
        )
        for name in ("nms", "qnms"):
            torch.library.define(f"torchvision::{name}", _SCHEMA)
