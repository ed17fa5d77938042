"""An LSTM of two layers over a series of measurements."""

from __future__ import annotations

import torch
from torch import Tensor, nn

FEATURES = 64
WIDTH = 256
OUTPUTS = 16


class Recurrent(nn.Module):
    """float32[batch, steps, 64] to float32[batch, 16], from the state after the last step."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(FEATURES, WIDTH, num_layers=2, batch_first=True)
        self.head = nn.Linear(WIDTH, OUTPUTS)

    def forward(self, series: Tensor) -> Tensor:
        states, _ = self.lstm(series)
        outputs: Tensor = self.head(states[:, -1])
        return outputs


def build() -> nn.Module:
    torch.manual_seed(0)
    return Recurrent().eval()
