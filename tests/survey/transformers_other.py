"""Architectures of the transformers package for images, sound, video, and several of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from tests.survey.optional_packages import declare_torchvision
from tests.survey.registry import BATCH, Architecture, Sample, floats, indices
from tests.survey.transformers_common import (
    SEQUENCES,
    SIZES,
    Row,
    builder,
    make,
)


def _image(size: int = 32) -> Callable[[], dict[str, torch.Tensor]]:
    return lambda: {"pixel_values": floats(BATCH, 3, size, size)}


def _sound(samples: int = 800) -> Callable[[], dict[str, torch.Tensor]]:
    return lambda: {"input_values": floats(BATCH, samples)}


_VISION = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "image_size": 32,
    "patch_size": 8,
}
_SPEECH = {
    **SIZES,
    "conv_dim": (16, 16, 16),
    "conv_kernel": (10, 3, 2),
    "conv_stride": (5, 2, 2),
    "num_feat_extract_layers": 3,
    "num_conv_pos_embeddings": 16,
    "num_conv_pos_embedding_groups": 2,
}
_STAGES = {"depths": [1, 1, 2, 1], "hidden_sizes": [8, 16, 24, 32]}

# name -> class without "Model" (or with its task), fields of the configuration, inputs
_TABLE: dict[str, Row] = {
    # images
    "convnext": ("ConvNext", _STAGES, _image()),
    "vit": ("ViT", _VISION, _image()),
    # sound
    "whisper": (
        "Whisper",
        {
            **SEQUENCES,
            "num_mel_bins": 16,
            "max_source_positions": 20,
            "max_target_positions": 20,
            "pad_token_id": 0,
            "decoder_start_token_id": 1,
            "bos_token_id": 1,
            "eos_token_id": 2,
        },
        lambda: {
            "input_features": floats(BATCH, 16, 40),
            "decoder_input_ids": indices(90, BATCH, 5),
        },
    ),
    # time series, video, detection, several kinds of input
}


def _backbone() -> Any:
    from transformers import ResNetConfig

    return ResNetConfig(**_STAGES, embedding_size=8, out_features=["stage2", "stage3", "stage4"])


_DETECTION = {
    "use_timm_backbone": False,
    "use_pretrained_backbone": False,
    "backbone": None,
    "d_model": 32,
    "encoder_layers": 1,
    "decoder_layers": 1,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 48,
    "decoder_ffn_dim": 48,
    "num_queries": 5,
}


def _detector(kind: str, config: str, **fields: Any) -> Callable[[], Sample]:
    def build() -> Sample:
        declare_torchvision()
        return make(kind, config, {"backbone_config": _backbone(), **fields}, _image(64))

    return build


_BUILDERS = {name: builder(row) for name, row in _TABLE.items()} | {}

ARCHITECTURES = [Architecture(name, "transformers", build) for name, build in _BUILDERS.items()]
