"""timm's own test models: one small network of each family, with random weights."""

import importlib.util
from pathlib import Path

import torch


def _declare_missing_operators() -> None:
    """Where pip finds no CPU build of torchvision, PyPI's build for CUDA is installed: its compiled
    operators are not there, and its import fails on two of their names. timm's networks call none,
    so these tests need the names alone. With a CPU build nothing is declared, and nothing missing.
    """
    spec = importlib.util.find_spec("torchvision")
    if spec is None or spec.origin is None or torch.version.cuda:
        return
    if "+cu" in Path(spec.origin).with_name("version.py").read_text(encoding="utf-8"):
        for name in ("nms", "qnms"):
            schema = "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"
            torch.library.define(f"torchvision::{name}", schema)


_declare_missing_operators()

import timm  # noqa: E402


def _model(name: str, **options: object) -> torch.nn.Module:
    torch.manual_seed(0)
    model: torch.nn.Module = timm.create_model(name, pretrained=False, num_classes=10, **options)
    return model


def resnet() -> torch.nn.Module:
    return _model("test_resnet")


def vit() -> torch.nn.Module:
    # Without it, positions are resized by an operator that AOTInductor has no C interface for.
    return _model("test_vit", dynamic_img_size=False)


def convnext() -> torch.nn.Module:
    return _model("test_convnext")


def efficientnet() -> torch.nn.Module:
    return _model("test_efficientnet")


def byobnet() -> torch.nn.Module:
    return _model("test_byobnet")


def mambaout() -> torch.nn.Module:
    return _model("test_mambaout")
