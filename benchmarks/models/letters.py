"""Letters in a line of text, as CRNN: convolutions, and an LSTM in both directions over columns."""

from __future__ import annotations

import torch
from torch import Tensor, nn

LETTERS = 97
WIDTH = 128


def convolution(inputs: int, outputs: int, pool: tuple[int, int] | None) -> list[nn.Module]:
    parts: list[nn.Module] = [
        nn.Conv2d(inputs, outputs, 3, padding=1, bias=False),
        nn.BatchNorm2d(outputs),
        nn.ReLU(),
    ]
    return [*parts, nn.MaxPool2d(pool)] if pool else parts


class Letters(nn.Module):
    """float32[batch, 1, 32, 160] to float32[batch, 40, 97]"""

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(
            *convolution(1, 32, (2, 2)),
            *convolution(32, 64, (2, 2)),
            *convolution(64, 128, None),
            *convolution(128, 128, (2, 1)),
            *convolution(128, 256, (2, 1)),
            nn.Conv2d(256, 256, (2, 1)),
            nn.ReLU(),
        )
        self.columns = nn.LSTM(256, WIDTH, 2, batch_first=True, bidirectional=True)
        self.head = nn.Linear(2 * WIDTH, LETTERS)

    def forward(self, lines: Tensor) -> Tensor:
        x = self.features(lines).squeeze(2).transpose(1, 2)
        result: Tensor = self.head(self.columns(x)[0]).log_softmax(-1)
        return result


def build() -> nn.Module:
    torch.manual_seed(0)
    return Letters().eval()
