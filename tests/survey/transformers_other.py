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
    VOCABULARY,
    Row,
    builder,
    make,
    tokens,
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
    "beit": ("Beit", {**_VISION, "use_relative_position_bias": True}, _image()),
    "convnext": ("ConvNext", _STAGES, _image()),
    "convnext_v2": ("ConvNextV2", _STAGES, _image()),
    "deit": ("DeiT", _VISION, _image()),
    "dinov2": ("Dinov2", _VISION, _image()),
    "dpt": (
        "DPT",
        {
            **_VISION,
            "backbone_out_indices": [0, 0, 1, 1],
            "neck_hidden_sizes": [8, 8, 8, 8],
            "fusion_hidden_size": 8,
            "is_hybrid": False,
        },
        _image(),
    ),
    "efficientnet": (
        "EfficientNet",
        {"image_size": 64, "width_coefficient": 0.2, "depth_coefficient": 0.3, "hidden_dim": 256},
        _image(64),
    ),
    "glpn": (
        "GLPN",
        {
            "depths": [1, 1, 1, 1],
            "hidden_sizes": [8, 16, 24, 32],
            "num_attention_heads": [1, 2, 2, 4],
            "sr_ratios": [8, 4, 2, 1],
        },
        _image(64),
    ),
    "hiera": (
        "Hiera",
        {
            "embed_dim": 16,
            "depths": [1, 1, 1, 1],
            "num_heads": [1, 2, 4, 8],
            "image_size": [64, 64],
        },
        _image(64),
    ),
    "levit": (
        "Levit",
        {
            "image_size": 64,
            "hidden_sizes": [16, 24, 32],
            "num_attention_heads": [2, 3, 4],
            "depths": [1, 1, 1],
            "key_dim": [8, 8, 8],
        },
        _image(64),
    ),
    "mobilevit": (
        "MobileViT",
        {
            "image_size": 64,
            "hidden_sizes": [16, 24, 32],
            "neck_hidden_sizes": [8, 8, 16, 16, 24, 24, 32],
            "num_attention_heads": 4,
        },
        _image(64),
    ),
    "poolformer": (
        "PoolFormer",
        {"hidden_sizes": [8, 16, 24, 32], "depths": [1, 1, 1, 1]},
        _image(64),
    ),
    "pvt": (
        "Pvt",
        {
            "image_size": 64,
            "hidden_sizes": [8, 16, 24, 32],
            "depths": [1, 1, 1, 1],
            "num_attention_heads": [1, 2, 2, 4],
        },
        _image(64),
    ),
    "regnet": ("RegNet", {**_STAGES, "groups_width": 8, "embedding_size": 8}, _image(64)),
    "resnet": ("ResNet", {**_STAGES, "embedding_size": 8}, _image(64)),
    "segformer": (
        "SegformerForSemanticSegmentation",
        {
            "depths": [1, 1, 1, 1],
            "hidden_sizes": [8, 16, 24, 32],
            "num_attention_heads": [1, 2, 2, 4],
            "decoder_hidden_size": 16,
        },
        _image(64),
    ),
    "swin": (
        "Swin",
        {
            "image_size": 32,
            "patch_size": 2,
            "embed_dim": 16,
            "depths": [2, 2],
            "num_heads": [2, 4],
            "window_size": 4,
        },
        _image(),
    ),
    "swin_v2": (
        "Swinv2",
        {
            "image_size": 32,
            "patch_size": 2,
            "embed_dim": 16,
            "depths": [2, 2],
            "num_heads": [2, 4],
            "window_size": 4,
        },
        _image(),
    ),
    "swin2sr": (
        "Swin2SR",
        {
            "image_size": 16,
            "embed_dim": 16,
            "depths": [2, 2],
            "num_heads": [2, 4],
            "window_size": 4,
            "upscale": 2,
        },
        _image(16),
    ),
    "vit": ("ViT", _VISION, _image()),
    "vit_mae": ("ViTMAE", {**_VISION, "mask_ratio": 0.5}, _image()),
    "yolos": (
        "YolosForObjectDetection",
        {**_VISION, "image_size": [32, 32], "num_detection_tokens": 5},
        _image(),
    ),
    # sound
    "ast": (
        "AST",
        {**_VISION, "num_mel_bins": 32, "max_length": 64},
        lambda: {"input_values": floats(BATCH, 64, 32)},
    ),
    "data2vec_audio": (
        "Data2VecAudio",
        {**_SPEECH, "num_conv_pos_embeddings": 2, "conv_pos_kernel_size": 5},
        _sound(),
    ),
    "encodec": (
        "Encodec",
        {
            "num_filters": 4,
            "hidden_size": 16,
            "upsampling_ratios": [4, 2],
            "codebook_size": 16,
            "codebook_dim": 16,
            "target_bandwidths": [24.0],
        },
        lambda: {"input_values": floats(BATCH, 1, 800)},
    ),
    "hubert": ("Hubert", _SPEECH, _sound()),
    "moonshine": (
        "Moonshine",
        {
            "vocab_size": VOCABULARY,
            "hidden_size": 32,
            "intermediate_size": 48,
            "encoder_num_hidden_layers": 1,
            "decoder_num_hidden_layers": 1,
            "encoder_num_attention_heads": 4,
            "decoder_num_attention_heads": 4,
            "use_cache": False,
        },
        lambda: {"input_values": floats(BATCH, 2000), "decoder_input_ids": indices(90, BATCH, 5)},
    ),
    "wav2vec2": ("Wav2Vec2", _SPEECH, _sound()),
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
    "vits": (
        "Vits",
        {
            **SIZES,
            "num_attention_heads": 2,
            "ffn_dim": 48,
            "flow_size": 16,
            "spectrogram_bins": 17,
            "upsample_initial_channel": 16,
            "upsample_rates": [4, 2],
            "upsample_kernel_sizes": [8, 4],
            "resblock_kernel_sizes": [3],
            "resblock_dilation_sizes": [[1, 3]],
            "prior_encoder_num_wavenet_layers": 1,
            "posterior_encoder_num_wavenet_layers": 1,
            "use_stochastic_duration_prediction": False,
            "duration_predictor_filter_channels": 16,
        },
        tokens,
    ),
    # time series, video, detection, several kinds of input
    "patchtst": (
        "PatchTST",
        {
            "num_input_channels": 2,
            "context_length": 32,
            "patch_length": 8,
            "patch_stride": 8,
            "d_model": 16,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "ffn_dim": 32,
        },
        lambda: {"past_values": floats(BATCH, 32, 2)},
    ),
    "patchtsmixer": (
        "PatchTSMixer",
        {
            "num_input_channels": 2,
            "context_length": 32,
            "patch_length": 8,
            "patch_stride": 8,
            "d_model": 16,
            "num_layers": 2,
        },
        lambda: {"past_values": floats(BATCH, 32, 2)},
    ),
    "timesformer": (
        "Timesformer",
        {**_VISION, "num_frames": 2},
        lambda: {"pixel_values": floats(BATCH, 2, 3, 32, 32)},
    ),
    "videomae": (
        "VideoMAE",
        {**_VISION, "num_frames": 2, "tubelet_size": 2},
        lambda: {"pixel_values": floats(BATCH, 2, 3, 32, 32)},
    ),
    "vivit": (
        "Vivit",
        {**_VISION, "num_frames": 2, "tubelet_size": [2, 8, 8]},
        lambda: {"pixel_values": floats(BATCH, 2, 3, 32, 32)},
    ),
    "clip": (
        "CLIP",
        {
            "text_config": {**SIZES, "eos_token_id": 98},
            "vision_config": _VISION,
            "projection_dim": 16,
        },
        lambda: {**tokens(), **_image()()},
    ),
    "siglip": (
        "Siglip",
        {"text_config": SIZES, "vision_config": _VISION},
        lambda: {**tokens(), **_image()()},
    ),
    "perceiver": (
        "Perceiver",
        {
            "num_latents": 4,
            "d_latents": 16,
            "d_model": 32,
            "num_blocks": 1,
            "num_self_attends_per_block": 1,
            "num_self_attention_heads": 2,
            "num_cross_attention_heads": 2,
        },
        lambda: {"inputs": floats(BATCH, 7, 32)},
    ),
    "decision_transformer": (
        "DecisionTransformer",
        {
            "state_dim": 5,
            "act_dim": 3,
            "hidden_size": 32,
            "n_layer": 2,
            "n_head": 4,
            "max_ep_len": 20,
        },
        lambda: {
            "states": floats(BATCH, 4, 5),
            "actions": floats(BATCH, 4, 3),
            "rewards": floats(BATCH, 4, 1),
            "returns_to_go": floats(BATCH, 4, 1),
            "timesteps": indices(20, BATCH, 4),
            "attention_mask": torch.ones(BATCH, 4),
        },
    ),
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


_BUILDERS = {name: builder(row) for name, row in _TABLE.items()} | {
    "detr": _detector("DetrForObjectDetection", "DetrConfig", **_DETECTION),
    "conditional_detr": _detector(
        "ConditionalDetrForObjectDetection", "ConditionalDetrConfig", **_DETECTION
    ),
    "deformable_detr": _detector(
        "DeformableDetrForObjectDetection",
        "DeformableDetrConfig",
        **{**_DETECTION, "encoder_layers": 2, "decoder_layers": 2},
    ),
    "upernet": _detector(
        "UperNetForSemanticSegmentation",
        "UperNetConfig",
        hidden_size=16,
        auxiliary_in_channels=32,
        auxiliary_channels=8,
    ),
}

ARCHITECTURES = [Architecture(name, "transformers", build) for name, build in _BUILDERS.items()]
