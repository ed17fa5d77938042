"""timm's own test models: one small network of each family, with random weights."""

import torch

# torchvision's released wheel is built for CUDA. Beside a CPU torch its compiled operators don't
# load, and its import fails on their names. Nothing here calls them: declaring them is enough.
_SCHEMA = "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"
for _name in ("nms", "qnms"):
    if not hasattr(torch.ops.torchvision, _name):
        torch.library.define(f"torchvision::{_name}", _SCHEMA)

import timm  # noqa: E402


def _model(name: str) -> torch.nn.Module:
    torch.manual_seed(0)
    return timm.create_model(name, pretrained=False, num_classes=10)


def resnet() -> torch.nn.Module:
    return _model("test_resnet")


def vit() -> torch.nn.Module:
    return _model("test_vit")


def convnext() -> torch.nn.Module:
    return _model("test_convnext")


def efficientnet() -> torch.nn.Module:
    return _model("test_efficientnet")


def byobnet() -> torch.nn.Module:
    return _model("test_byobnet")


def mambaout() -> torch.nn.Module:
    return _model("test_mambaout")
