"""Architectures of the timm package: few and narrow stages, small images."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tests.survey.optional_packages import declare_torchvision
from tests.survey.registry import BATCH, Architecture, Sample, floats

# timm's name -> options that make it small, side of the image
_TABLE: dict[str, tuple[Mapping[str, Any], int]] = {
    "test_byobnet": ({}, 64),
    "test_efficientnet_evos": ({}, 64),
    "test_mambaout": ({}, 64),
    "test_nfnet": ({}, 64),
    "test_vit": ({"dynamic_img_size": False}, 160),
    "test_vit_relpos": ({}, 160),
    "test_maxvit": ({}, 160),
    "beit_base_patch16_224": ({"img_size": 64, "embed_dim": 32, "depth": 2, "num_heads": 4}, 64),
    "cait_xxs24_224": ({"img_size": 64, "embed_dim": 32, "depth": 2, "num_heads": 4}, 64),
    "convit_tiny": (
        {"img_size": 64, "embed_dim": 32, "depth": 2, "num_heads": 4, "local_up_to_layer": 1},
        64,
    ),
    "convmixer_768_32": ({}, 64),
    "crossvit_tiny_240": ({"depth": ((1, 1, 0), (1, 1, 0), (1, 1, 0))}, 240),
    "davit_tiny": (
        {"depths": (1, 1, 1, 1), "embed_dims": (8, 16, 24, 32), "num_heads": (1, 2, 3, 4)},
        64,
    ),
    "densenet121": ({"block_config": (2, 2), "growth_rate": 8}, 64),
    "edgenext_xx_small": ({}, 64),
    "efficientnet_b0": ({}, 64),
    "ghostnet_100": ({}, 64),
    "inception_v3": ({}, 128),
    "mixer_s16_224": ({"img_size": 64}, 64),
    "mobilenetv3_small_050": ({}, 64),
    "poolformer_s12": ({}, 64),
    "regnetx_002": ({}, 64),
    "repvgg_a0": ({}, 64),
    "resnet18": ({}, 64),
    "swin_tiny_patch4_window7_224": (
        {"img_size": 56, "depths": (2, 1), "embed_dim": 16, "num_heads": (2, 4)},
        56,
    ),
    "vgg11_bn": ({}, 64),
    "vit_tiny_patch16_224": ({"img_size": 64, "embed_dim": 32, "depth": 2, "num_heads": 4}, 64),
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
