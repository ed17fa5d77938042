"""Speech to letters, as Deep Speech 2: large filters, then GRUs in both directions, summed."""

from __future__ import annotations

import torch
from torch import Tensor, nn

BANDS = 161
CHANNELS = 32
ROWS = 41
WIDTH = 512
LAYERS = 3
LETTERS = 29


class Recurrent(nn.Module):
    """A GRU over [time, batch, inputs], the inputs normed over all moments but in the first."""

    def __init__(self, inputs: int, norm: bool) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(inputs) if norm else None
        self.layer = nn.GRU(inputs, WIDTH, bidirectional=True)

    def forward(self, x: Tensor) -> Tensor:
        time, batch, inputs = x.shape
        if self.norm is not None:
            x = self.norm(x.reshape(time * batch, inputs)).view(time, batch, inputs)
        y, _ = self.layer(x)
        result: Tensor = y.view(time, batch, 2, WIDTH).sum(2)
        return result


class Dictation(nn.Module):
    """float32[batch, 1, 161, 128] to float32[batch, 64, 29], logarithms of probabilities"""

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, CHANNELS, (41, 11), (2, 2), (20, 5), bias=False),
            nn.BatchNorm2d(CHANNELS),
            nn.Hardtanh(0, 20, inplace=True),
            nn.Conv2d(CHANNELS, CHANNELS, (21, 11), (2, 1), (10, 5), bias=False),
            nn.BatchNorm2d(CHANNELS),
            nn.Hardtanh(0, 20, inplace=True),
        )
        self.layers = nn.Sequential(
            Recurrent(CHANNELS * ROWS, False), *(Recurrent(WIDTH, True) for _ in range(LAYERS - 1))
        )
        self.head = nn.Sequential(nn.BatchNorm1d(WIDTH), nn.Linear(WIDTH, LETTERS, bias=False))
        self._settle()

    def _settle(self) -> None:
        """Makes norms find what training would have made them expect."""
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, nonlinearity="relu")
            elif isinstance(module, nn.BatchNorm1d) and module.running_var is not None:
                nn.init.uniform_(module.running_var, 0.05, 0.15)

    def forward(self, spectrogram: Tensor) -> Tensor:
        x = self.features(spectrogram)
        x = x.view(x.shape[0], CHANNELS * ROWS, -1).permute(2, 0, 1).contiguous()
        x = self.layers(x)
        time, batch, _ = x.shape
        scores: Tensor = self.head(x.view(time * batch, WIDTH)).view(time, batch, LETTERS)
        return scores.transpose(0, 1).log_softmax(-1)


def build() -> nn.Module:
    torch.manual_seed(0)
    return Dictation().eval()
