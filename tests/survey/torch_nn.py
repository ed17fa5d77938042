"""Layers of torch.nn, each alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn

from tests.survey.registry import BATCH, Architecture, Function, Sample, floats, indices


def _layer(module: nn.Module, *args: Any, batch: bool = True) -> Sample:
    return Sample(module.eval(), args, batch=batch)


def _image(channels: int = 6, height: int = 11, width: int = 13) -> torch.Tensor:
    return floats(BATCH, channels, height, width)


class _Unpool(nn.Module):
    """Pooling that keeps the places of the maxima, and its inverse."""

    def __init__(self, dims: int) -> None:
        super().__init__()
        self.pool = getattr(nn, f"MaxPool{dims}d")(2, return_indices=True)
        self.unpool = getattr(nn, f"MaxUnpool{dims}d")(2)

    def forward(self, x: torch.Tensor) -> Any:
        y, places = self.pool(x)
        return self.unpool(y, places, output_size=x.shape[2:]), places


class _Concatenated(nn.Module):
    """A residual that is some channels of an image, and results that are concatenated."""

    def __init__(self) -> None:
        super().__init__()
        self.split, self.inner = nn.Conv2d(6, 10, 1), nn.Conv2d(5, 5, 3, padding=1)
        self.up = nn.ConvTranspose2d(6, 9, 3, padding=1)
        self.norm = nn.BatchNorm2d(9)
        self.wide, self.filter = nn.Conv2d(6, 20, 1), nn.Conv2d(20, 20, 3, padding=1, groups=20)

    def forward(self, x: torch.Tensor) -> Any:
        parts = [*F.silu(self.split(x)).chunk(2, 1)]
        parts.append(parts[1] + F.silu(self.inner(parts[1])))
        parts.append(F.relu(self.norm(self.up(x))))
        parts.append(F.relu6(self.filter(F.relu6(self.wide(x)))))
        return torch.cat(parts, 1)


def _transformer() -> Sample:
    module = nn.Transformer(
        32, 4, num_encoder_layers=1, num_decoder_layers=1, dim_feedforward=64, batch_first=True
    )
    return _layer(module, floats(BATCH, 7, 32), floats(BATCH, 5, 32))


def _encoder(**options: Any) -> Sample:
    layer = nn.TransformerEncoderLayer(32, 4, dim_feedforward=64, batch_first=True, **options)
    module = nn.TransformerEncoder(layer, num_layers=2, enable_nested_tensor=False)
    return _layer(module, floats(BATCH, 7, 32))


def _causal_encoder() -> Sample:
    layer = nn.TransformerEncoderLayer(32, 4, dim_feedforward=64, batch_first=True)
    module = nn.TransformerEncoder(layer, num_layers=1, enable_nested_tensor=False)
    mask = nn.Transformer.generate_square_subsequent_mask(7)
    return Sample(module.eval(), (floats(BATCH, 7, 32), mask), {"is_causal": True})


def _attention(**options: Any) -> Sample:
    module = nn.MultiheadAttention(32, 4, batch_first=True, **options)
    x = floats(BATCH, 7, 32)
    return _layer(module, x, x.clone(), x.clone())


def _sdpa(dtype: torch.dtype = torch.float32, heads: int = 4, **options: Any) -> Sample:
    q = floats(BATCH, 4, 7, 16, dtype=dtype)
    k, v = (floats(BATCH, heads, 7, 16, dtype=dtype) for _ in range(2))

    def attend(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return F.scaled_dot_product_attention(q, k, v, **options)

    return _layer(Function(attend), q, k, v)


def _sdpa_masked(dtype: torch.dtype) -> Sample:
    q, k, v = (floats(BATCH, 4, 7, 16) for _ in range(3))
    mask = floats(BATCH, 1, 7, 7)
    if dtype == torch.bool:
        mask = mask > -1
    return _layer(
        Function(lambda q, k, v, m: F.scaled_dot_product_attention(q, k, v, m)), q, k, v, mask
    )


def _recurrent(kind: type[nn.Module], **options: Any) -> Sample:
    return _layer(kind(8, 16, batch_first=True, **options), floats(BATCH, 6, 8))


def _cell(kind: type[nn.Module]) -> Sample:
    return _layer(kind(8, 16), floats(BATCH, 8))


def _bag(mode: str, **options: Any) -> Sample:
    module = nn.EmbeddingBag(11, 8, mode=mode, **options)
    return _layer(module, indices(11, BATCH, 4))


def _bag_with_offsets() -> Sample:
    module = nn.EmbeddingBag(11, 8, mode="sum", include_last_offset=True)
    offsets = torch.tensor([0, 2, 5, 5, 9])
    return Sample(module.eval(), (indices(11, 9), offsets, floats(9)), batch=False)


def _upsample(x: torch.Tensor, mode: str, **options: Any) -> Sample:
    return _layer(Function(lambda x: F.interpolate(x, mode=mode, **options)), x)


def _function(function: Callable[..., Any], *args: Any, batch: bool = True) -> Sample:
    return _layer(Function(function), *args, batch=batch)


def _grid(mode: str, padding: str = "zeros") -> Sample:
    return _function(
        lambda x, g: F.grid_sample(x, g, mode=mode, padding_mode=padding, align_corners=False),
        _image(),
        torch.rand(BATCH, 5, 7, 2) * 2.4 - 1.2,
    )


def _mlp(dtype: torch.dtype) -> Sample:
    module = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 4)).to(dtype)
    return _layer(module, floats(BATCH, 8, dtype=dtype))


_X1, _X3 = (BATCH, 6, 13), (BATCH, 6, 5, 7, 8)

_BUILDERS: dict[str, Callable[[], Sample]] = {
    "linear_float32": lambda: _mlp(torch.float32),
    "linear_float64": lambda: _mlp(torch.float64),
    "linear_bfloat16": lambda: _mlp(torch.bfloat16),
    "linear_float16": lambda: _mlp(torch.float16),
    "linear_without_bias": lambda: _layer(nn.Linear(8, 4, bias=False), floats(BATCH, 5, 8)),
    "bilinear": lambda: _layer(nn.Bilinear(5, 6, 7), floats(BATCH, 5), floats(BATCH, 6)),
    "conv1d": lambda: _layer(nn.Conv1d(6, 8, 3, padding=1), floats(*_X1)),
    "conv1d_dilated": lambda: _layer(nn.Conv1d(6, 8, 3, dilation=2), floats(*_X1)),
    "conv1d_causal": lambda: _layer(nn.Conv1d(6, 6, 4, padding=3, groups=6), floats(*_X1)),
    "conv2d": lambda: _layer(nn.Conv2d(6, 8, 3, stride=2, padding=1), _image()),
    "conv2d_bfloat16": lambda: _layer(nn.Conv2d(6, 8, 3).bfloat16(), _image().bfloat16()),
    "conv2d_float16": lambda: _layer(nn.Conv2d(6, 8, 3).half(), _image().half()),
    "conv2d_same": lambda: _layer(nn.Conv2d(6, 8, 4, padding="same"), _image()),
    "conv2d_reflect": lambda: _layer(
        nn.Conv2d(6, 8, 3, padding=1, padding_mode="reflect"), _image()
    ),
    "conv2d_grouped": lambda: _layer(nn.Conv2d(6, 9, 3, groups=3), _image()),
    "conv2d_depthwise": lambda: _layer(nn.Conv2d(6, 6, 3, groups=6, padding=1), _image()),
    "conv2d_channels_last": lambda: _layer(
        nn.Conv2d(6, 8, 3),
        _image().to(memory_format=torch.channels_last),
    ),
    "conv2d_concatenated": lambda: _layer(_Concatenated(), _image()),
    "conv3d": lambda: _layer(nn.Conv3d(6, 8, 3), floats(*_X3)),
    "conv_transpose1d": lambda: _layer(nn.ConvTranspose1d(6, 8, 4, stride=2), floats(*_X1)),
    "conv_transpose2d": lambda: _layer(
        nn.ConvTranspose2d(6, 8, 3, stride=2, padding=1, output_padding=1), _image()
    ),
    "conv_transpose2d_grouped": lambda: _layer(
        nn.ConvTranspose2d(6, 6, 3, groups=3, dilation=2), _image()
    ),
    "conv_transpose3d": lambda: _layer(nn.ConvTranspose3d(6, 8, 3, stride=2), floats(*_X3)),
    "unfold": lambda: _layer(nn.Unfold(3, padding=1), _image()),
    "fold": lambda: _layer(nn.Fold((6, 8), 2, stride=2), floats(BATCH, 24, 12)),
    "max_pool1d": lambda: _layer(nn.MaxPool1d(3, stride=2), floats(*_X1)),
    "max_pool2d": lambda: _layer(nn.MaxPool2d(3, stride=2, padding=1), _image()),
    "max_pool2d_large": lambda: _layer(nn.MaxPool2d(9), floats(BATCH, 2, 20, 20)),
    "max_pool2d_dilated": lambda: _layer(nn.MaxPool2d(2, dilation=2), _image()),
    "max_pool3d": lambda: _layer(nn.MaxPool3d(2), floats(*_X3)),
    "max_unpool1d": lambda: _layer(_Unpool(1), floats(*_X1)),
    "max_unpool2d": lambda: _layer(_Unpool(2), _image()),
    "max_unpool3d": lambda: _layer(_Unpool(3), floats(*_X3)),
    "fractional_max_pool2d": lambda: _layer(
        nn.FractionalMaxPool2d(2, output_size=4, _random_samples=torch.rand(BATCH, 6, 2)),
        _image(),
        batch=False,
    ),
    "lp_pool2d": lambda: _layer(nn.LPPool2d(2, 3), _image()),
    "avg_pool1d": lambda: _layer(nn.AvgPool1d(3), floats(*_X1)),
    "avg_pool2d": lambda: _layer(nn.AvgPool2d(3, stride=2, padding=1), _image()),
    "avg_pool2d_large": lambda: _layer(nn.AvgPool2d(9), floats(BATCH, 2, 20, 20)),
    "avg_pool3d": lambda: _layer(nn.AvgPool3d(2), floats(*_X3)),
    "adaptive_avg_pool1d": lambda: _layer(nn.AdaptiveAvgPool1d(5), floats(*_X1)),
    "adaptive_avg_pool2d": lambda: _layer(nn.AdaptiveAvgPool2d((4, 5)), _image()),
    "adaptive_avg_pool2d_large": lambda: _layer(nn.AdaptiveAvgPool2d(3), floats(BATCH, 2, 29, 31)),
    "adaptive_avg_pool3d": lambda: _layer(nn.AdaptiveAvgPool3d(3), floats(*_X3)),
    "adaptive_max_pool1d": lambda: _layer(nn.AdaptiveMaxPool1d(5), floats(*_X1)),
    "adaptive_max_pool2d": lambda: _layer(nn.AdaptiveMaxPool2d((4, 5)), _image()),
    "adaptive_max_pool2d_large": lambda: _layer(nn.AdaptiveMaxPool2d(3), floats(BATCH, 2, 29, 31)),
    "adaptive_max_pool3d": lambda: _layer(nn.AdaptiveMaxPool3d(3), floats(*_X3)),
    "upsample_nearest1d": lambda: _upsample(floats(*_X1), "nearest", scale_factor=2.0),
    "upsample_nearest2d": lambda: _upsample(_image(), "nearest", scale_factor=2.0),
    "upsample_nearest_exact2d": lambda: _upsample(_image(), "nearest-exact", size=(17, 9)),
    "upsample_nearest3d": lambda: _upsample(floats(*_X3), "nearest", scale_factor=2.0),
    "upsample_linear1d": lambda: _upsample(floats(*_X1), "linear", scale_factor=2.0),
    "upsample_bilinear2d": lambda: _upsample(_image(), "bilinear", scale_factor=1.5),
    "upsample_bilinear2d_corners": lambda: _upsample(
        _image(), "bilinear", size=(17, 9), align_corners=True
    ),
    "upsample_bilinear2d_antialias": lambda: _upsample(
        _image(), "bilinear", size=(5, 6), antialias=True
    ),
    "upsample_bicubic2d": lambda: _upsample(_image(), "bicubic", scale_factor=2.0),
    "upsample_bicubic2d_antialias": lambda: _upsample(
        _image(), "bicubic", size=(5, 6), antialias=True
    ),
    "upsample_trilinear3d": lambda: _upsample(floats(*_X3), "trilinear", scale_factor=2.0),
    "upsample_area": lambda: _upsample(_image(), "area", size=(4, 5)),
    "grid_sample_bilinear": lambda: _grid("bilinear"),
    "grid_sample_nearest": lambda: _grid("nearest", "border"),
    "grid_sample_bicubic": lambda: _grid("bicubic", "reflection"),
    "grid_sample3d": lambda: _function(
        lambda x, g: F.grid_sample(x, g, align_corners=True),
        floats(*_X3),
        torch.rand(BATCH, 2, 3, 4, 3) * 2 - 1,
    ),
    "affine_grid": lambda: _function(
        lambda t: F.affine_grid(t, [BATCH, 2, 5, 7]), floats(BATCH, 2, 3), batch=False
    ),
    "pixel_shuffle": lambda: _layer(nn.PixelShuffle(2), floats(BATCH, 8, 5, 7)),
    "pixel_unshuffle": lambda: _layer(nn.PixelUnshuffle(2), floats(BATCH, 2, 6, 8)),
    "channel_shuffle": lambda: _layer(nn.ChannelShuffle(3), _image()),
    "pad_reflect": lambda: _layer(nn.ReflectionPad2d(2), _image()),
    "pad_replicate": lambda: _layer(nn.ReplicationPad2d(2), _image()),
    "pad_circular": lambda: _layer(nn.CircularPad2d(2), _image()),
    "pad_constant": lambda: _layer(nn.ConstantPad2d(2, 0.5), _image()),
    "batch_norm": lambda: _layer(nn.BatchNorm2d(6), _image()),
    "group_norm": lambda: _layer(nn.GroupNorm(3, 6), _image()),
    "instance_norm": lambda: _layer(nn.InstanceNorm2d(6, affine=True), _image()),
    "layer_norm": lambda: _layer(nn.LayerNorm(13), _image()),
    "rms_norm": lambda: _layer(nn.RMSNorm(13), _image()),
    "local_response_norm": lambda: _layer(nn.LocalResponseNorm(3), _image()),
    "weight_norm": lambda: _layer(
        nn.utils.parametrizations.weight_norm(nn.Linear(8, 4)), floats(BATCH, 8)
    ),
    "spectral_norm": lambda: _layer(
        nn.utils.parametrizations.spectral_norm(nn.Linear(8, 4)), floats(BATCH, 8)
    ),
    "embedding": lambda: _layer(nn.Embedding(11, 8, padding_idx=0), indices(11, BATCH, 4)),
    "embedding_max_norm": lambda: _layer(nn.Embedding(11, 8, max_norm=1.0), indices(11, BATCH, 4)),
    "embedding_bag_sum": lambda: _bag("sum"),
    "embedding_bag_mean": lambda: _bag("mean", padding_idx=0),
    "embedding_bag_max": lambda: _bag("max"),
    "embedding_bag_offsets": _bag_with_offsets,
    "rnn": lambda: _recurrent(nn.RNN),
    "rnn_relu": lambda: _recurrent(nn.RNN, nonlinearity="relu", num_layers=2),
    "gru": lambda: _recurrent(nn.GRU),
    "gru_bidirectional": lambda: _recurrent(nn.GRU, bidirectional=True, num_layers=2),
    "lstm": lambda: _recurrent(nn.LSTM),
    "lstm_bidirectional": lambda: _recurrent(nn.LSTM, bidirectional=True, num_layers=2),
    "lstm_projected": lambda: _recurrent(nn.LSTM, proj_size=4),
    # The steps are the dim that varies.
    "gru_dynamic": lambda: _layer(nn.GRU(8, 16, num_layers=2), floats(BATCH, 6, 8)),
    "lstm_dynamic": lambda: _layer(nn.LSTM(8, 16, num_layers=2), floats(BATCH, 6, 8)),
    "rnn_dynamic": lambda: _layer(nn.RNN(8, 16), floats(BATCH, 6, 8)),
    "rnn_relu_dynamic": lambda: _layer(nn.RNN(8, 16, nonlinearity="relu"), floats(BATCH, 6, 8)),
    "rnn_cell": lambda: _cell(nn.RNNCell),
    "gru_cell": lambda: _cell(nn.GRUCell),
    "lstm_cell": lambda: _cell(nn.LSTMCell),
    "transformer": _transformer,
    "transformer_encoder": _encoder,
    "transformer_encoder_norm_first": lambda: _encoder(norm_first=True, activation="gelu"),
    "transformer_encoder_causal": _causal_encoder,
    "multihead_attention": _attention,
    "multihead_attention_bias_kv": lambda: _attention(add_bias_kv=True, add_zero_attn=True),
    "sdpa": _sdpa,
    "sdpa_bfloat16": lambda: _sdpa(torch.bfloat16),
    "sdpa_float16": lambda: _sdpa(torch.float16),
    "sdpa_causal": lambda: _sdpa(is_causal=True),
    "sdpa_grouped": lambda: _sdpa(heads=2, enable_gqa=True, is_causal=True),
    "sdpa_bool_mask": lambda: _sdpa_masked(torch.bool),
    "sdpa_float_mask": lambda: _sdpa_masked(torch.float32),
    "cosine_similarity": lambda: _layer(
        nn.CosineSimilarity(), floats(BATCH, 5, 6), floats(BATCH, 5, 6)
    ),
    "pairwise_distance": lambda: _layer(nn.PairwiseDistance(), floats(BATCH, 5), floats(BATCH, 5)),
    "cross_entropy": lambda: _function(F.cross_entropy, floats(BATCH, 5), indices(5, BATCH)),
    "ctc_loss": lambda: _function(
        lambda p, t: F.ctc_loss(
            p.log_softmax(-1), t, torch.full((BATCH,), 9), torch.full((BATCH,), 4)
        ),
        floats(9, BATCH, 6),
        indices(5, BATCH, 4) + 1,
        batch=False,
    ),
    "glu": lambda: _layer(nn.GLU(), floats(BATCH, 8)),
    "softmax": lambda: _function(
        lambda x: (x.softmax(-1), x.log_softmax(0), F.softplus(x)), floats(BATCH, 8)
    ),
    "activations": lambda: _function(
        lambda x: [
            f(x) for f in (F.gelu, F.silu, F.mish, F.elu, F.selu, F.hardswish, F.softsign, F.celu)
        ],
        floats(BATCH, 8),
    ),
}

ARCHITECTURES = [Architecture(name, "torch.nn", build) for name, build in _BUILDERS.items()]
