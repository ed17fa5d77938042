"""Architectures of the timm package: few and narrow stages, small images."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tests.survey.optional_packages import declare_torchvision
from tests.survey.registry import BATCH, Architecture, Sample, floats

# timm's name -> options that make it small, side of the image
_TABLE: dict[str, tuple[Mapping[str, Any], int]] = {
    "resnet18": ({}, 64),
}


def _builder(name: str, options: Mapping[str, Any], side: int) -> Callable[[], Sample]:
    def build() -> Sample:
        declare_torchvision()
        import timm

        model = timm.create_model(name, pretrained=False, num_classes=10, **options)
        return Sample(model.eval(), (floats(BATCH, 3, side, side),))

    return build


ARCHITECTURES = [
    Architecture(name, "timm", _builder(name, options, side))
    for name, (options, side) in _TABLE.items()
]
