"""EfficientNet-Lite0: an ImageNet classifier.

Module names, leading underscores included, are those of the checkpoint, so the weights load by
name. The Lite variants have neither squeeze-and-excitation nor swish: all activations are ReLU6.

The picture goes in as RGB, [batch, 3, 224, 224], channels first. The weights come from TensorFlow
and expect its preprocessing: ``(byte - 127) / 128``, that is about -1 to 1, of the central
crop (224 / 256 of the shorter side), resized bicubically. Classes are ImageNet's 1,000 in their
usual order.
"""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor, nn
from torch.nn.functional import pad, relu6

CLASSES = 1000
STEM_CHANNELS = 32
HEAD_CHANNELS = 1280
BATCH_NORM_EPSILON = 1e-3


class Stage(NamedTuple):
    """``repeats`` blocks; the first one changes the channels and has the stride."""

    repeats: int
    kernel: int
    stride: int
    expand: int
    channels: int


STAGES = (
    Stage(repeats=1, kernel=3, stride=1, expand=1, channels=16),
    Stage(repeats=2, kernel=3, stride=2, expand=6, channels=24),
    Stage(repeats=2, kernel=5, stride=2, expand=6, channels=40),
    Stage(repeats=3, kernel=3, stride=2, expand=6, channels=80),
    Stage(repeats=3, kernel=5, stride=1, expand=6, channels=112),
    Stage(repeats=4, kernel=5, stride=2, expand=6, channels=192),
    Stage(repeats=1, kernel=3, stride=1, expand=6, channels=320),
)


class SameConv2d(nn.Conv2d):
    """A convolution without bias, padded as TensorFlow's SAME does.

    With stride 2 on an even size the padding is odd, and the larger part goes to the right and the
    bottom; ``nn.Conv2d`` alone pads both sides alike. Every size that is halved here is even.
    """

    def __init__(
        self, inputs: int, outputs: int, kernel: int, stride: int = 1, groups: int = 1
    ) -> None:
        super().__init__(inputs, outputs, kernel, stride, groups=groups, bias=False)
        total = kernel - stride
        self.before, self.after = total // 2, total - total // 2

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(pad(x, (self.before, self.after, self.before, self.after)))


def batch_norm(channels: int) -> nn.BatchNorm2d:
    return nn.BatchNorm2d(channels, eps=BATCH_NORM_EPSILON)


class Block(nn.Module):
    """Inverted residual: expand the channels, filter each by itself, project back."""

    def __init__(self, inputs: int, outputs: int, kernel: int, stride: int, expand: int) -> None:
        super().__init__()
        hidden = inputs * expand
        self.expands = expand != 1
        if self.expands:
            self._expand_conv = SameConv2d(inputs, hidden, 1)
            self._bn0 = batch_norm(hidden)
        self._depthwise_conv = SameConv2d(hidden, hidden, kernel, stride, groups=hidden)
        self._bn1 = batch_norm(hidden)
        self._project_conv = SameConv2d(hidden, outputs, 1)
        self._bn2 = batch_norm(outputs)
        self.residual = stride == 1 and inputs == outputs

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = relu6(self._bn0(self._expand_conv(x))) if self.expands else x
        y = relu6(self._bn1(self._depthwise_conv(y)))
        y = self._bn2(self._project_conv(y))
        return x + y if self.residual else y


class EfficientNetLite0(nn.Module):
    """images float32[batch, 3, 224, 224] -> logits float32[batch, 1000]."""

    def __init__(self) -> None:
        super().__init__()
        self._conv_stem = SameConv2d(3, STEM_CHANNELS, 3, stride=2)
        self._bn0 = batch_norm(STEM_CHANNELS)
        self._blocks = nn.ModuleList()
        channels = STEM_CHANNELS
        for stage in STAGES:
            for i in range(stage.repeats):
                stride = stage.stride if i == 0 else 1
                self._blocks.append(
                    Block(channels, stage.channels, stage.kernel, stride, stage.expand)
                )
                channels = stage.channels
        self._conv_head = SameConv2d(channels, HEAD_CHANNELS, 1)
        self._bn1 = batch_norm(HEAD_CHANNELS)
        self._fc = nn.Linear(HEAD_CHANNELS, CLASSES)

    def forward(self, images: Tensor) -> Tensor:
        x = relu6(self._bn0(self._conv_stem(images)))
        for block in self._blocks:
            x = block(x)
        x = relu6(self._bn1(self._conv_head(x)))
        logits: Tensor = self._fc(x.mean((2, 3)))
        return logits
