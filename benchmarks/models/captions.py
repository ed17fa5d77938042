"""Show, attend and tell: cells of an LSTM that look at parts of a picture, ten words long."""

from __future__ import annotations

import torch
from torch import Tensor, nn

PARTS = 49
FEATURES = 256
WIDTH = 256
WORDS = 5000
STEPS = 10


class Captions(nn.Module):
    """float32[batch, 49, 256] to the words, int64[batch, 10], and their scores"""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(WORDS, WIDTH)
        self.of_parts = nn.Linear(FEATURES, WIDTH)
        self.of_state = nn.Linear(WIDTH, WIDTH)
        self.score = nn.Linear(WIDTH, 1)
        self.cell = nn.LSTMCell(WIDTH + FEATURES, WIDTH)
        self.first = nn.Linear(FEATURES, 2 * WIDTH)
        self.head = nn.Linear(WIDTH, WORDS)

    def forward(self, parts: Tensor) -> tuple[Tensor, Tensor]:
        known = self.of_parts(parts)
        state, memory = self.first(parts.mean(1)).tanh().chunk(2, -1)
        word = torch.zeros(parts.shape[0], dtype=torch.int64)
        words, scores = [], []
        for _ in range(STEPS):
            weights = self.score(torch.tanh(known + self.of_state(state)[:, None])).softmax(1)
            seen = (weights * parts).sum(1)
            state, memory = self.cell(torch.cat((self.embed(word), seen), 1), (state, memory))
            best, word = self.head(state).log_softmax(-1).max(-1)
            words.append(word)
            scores.append(best)
        return torch.stack(words, 1), torch.stack(scores, 1)


def build() -> nn.Module:
    torch.manual_seed(0)
    return Captions().eval()
