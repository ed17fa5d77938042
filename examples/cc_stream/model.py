"""A small detector of voices in a stream of audio, which keeps its state in buffers.

Its weights are random: it shows how streams are handled, not how voices are found.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

WINDOW = 80
STEP = 40


class Detector(nn.Module):
    """One probability for each 10 ms of audio: float32[1, 160] samples at 16 kHz -> float32[1]."""

    tail: Tensor
    hidden: Tensor

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(7)
        self.filters = nn.Conv1d(1, 16, WINDOW, STEP)
        self.gru = nn.GRU(16, 32, batch_first=True)
        self.head = nn.Linear(32, 1)
        # What a stream remembers from call to call.
        self.register_buffer("tail", torch.zeros(1, WINDOW - STEP))
        self.register_buffer("hidden", torch.zeros(1, 1, 32))

    def forward(self, samples: Tensor) -> Tensor:
        audio = torch.cat([self.tail, samples], 1)
        self.tail.copy_(samples[:, STEP - WINDOW :])
        features = self.filters(audio[:, None]).abs().log1p().transpose(1, 2)
        outputs, hidden = self.gru(features, self.hidden)
        self.hidden.copy_(hidden)
        probability: Tensor = self.head(outputs[:, -1]).sigmoid()[0]
        return probability
