"""timm's own test models: one small network of each family, with random weights."""

import torch

# torchvision's released wheel is built for CUDA. Beside a CPU torch its compiled operators don't
# load, and its import fails on their names. Nothing here calls them: declaring them is enough.
_SCHEMA = "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"
for _name in ("nms", "qnms"):
    if not hasattr(torch.ops.torchvision, _name):
        torch.library.define(f"torchvision::{_name}", _SCHEMA)

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
