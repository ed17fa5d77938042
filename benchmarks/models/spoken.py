"""The decoder of Tacotron 2: attention that knows where it was, two cells, frame after frame."""

from __future__ import annotations

import itertools
import math

import torch
from torch import Tensor, nn
from torch.nn import functional

BANDS = 80
LETTERS = 64
WIDTH = 512
CELL = 1024
INNER = 256
ATTENTION = 128
FRAMES = 20


class Attention(nn.Module):
    """Scores add up the query, the letter and filters of the weights so far."""

    def __init__(self) -> None:
        super().__init__()
        self.query = nn.Linear(CELL, ATTENTION, bias=False)
        self.keys = nn.Linear(WIDTH, ATTENTION, bias=False)
        self.filters = nn.Conv1d(2, 32, 31, padding=15, bias=False)
        self.places = nn.Linear(32, ATTENTION, bias=False)
        self.scores = nn.Linear(ATTENTION, 1, bias=False)
        nn.init.normal_(self.filters.weight, std=0.5)
        nn.init.normal_(self.scores.weight, std=0.3)

    def forward(
        self, query: Tensor, letters: Tensor, keys: Tensor, weights: Tensor, hidden: Tensor
    ) -> tuple[Tensor, Tensor]:
        places = self.places(self.filters(weights).transpose(1, 2))
        scores = self.scores(torch.tanh(self.query(query.unsqueeze(1)) + places + keys))
        scores = scores.squeeze(-1).masked_fill(hidden, -math.inf)
        weight = functional.softmax(scores, dim=1)
        return torch.bmm(weight.unsqueeze(1), letters).squeeze(1), weight


class After(nn.Sequential):
    """Convolutions over all frames, which add details."""

    def __init__(self) -> None:
        widths = (BANDS, WIDTH, WIDTH, WIDTH, WIDTH, BANDS)
        layers: list[nn.Module] = []
        for a, b in itertools.pairwise(widths):
            conv = nn.Conv1d(a, b, 5, padding=2)
            nn.init.xavier_uniform_(conv.weight, gain=5 / 3)
            layers += [conv, nn.BatchNorm1d(b), nn.Tanh()]
        super().__init__(*layers[:-1])


class Spoken(nn.Module):
    """float32[batch, 64, 512] and int64[batch] to float32[batch, 80, 20] before and after the
    convolutions, float32[batch, 20] whether the speech ends, float32[batch, 20, 64] weights
    """

    def __init__(self) -> None:
        super().__init__()
        self.before = nn.Sequential(
            nn.Linear(BANDS, INNER, bias=False),
            nn.ReLU(),
            nn.Linear(INNER, INNER, bias=False),
            nn.ReLU(),
        )
        self.attention_cell = nn.LSTMCell(INNER + WIDTH, CELL)
        self.attention = Attention()
        self.cell = nn.LSTMCell(CELL + WIDTH, CELL)
        self.frame = nn.Linear(CELL + WIDTH, BANDS)
        self.end = nn.Linear(CELL + WIDTH, 1)
        for weight in (*self.before.parameters(), self.frame.weight):
            nn.init.normal_(weight, std=(2 / weight.shape[1]) ** 0.5)
        self.after = After()

    def forward(self, letters: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        batch = letters.shape[0]
        places = torch.arange(LETTERS, device=lengths.device)
        hidden = places[None] >= lengths[:, None]
        keys = self.attention.keys(letters)
        frame = letters.new_zeros(batch, BANDS)
        h1, c1, h2, c2 = (letters.new_zeros(batch, CELL) for _ in range(4))
        weight, total = (letters.new_zeros(batch, LETTERS) for _ in range(2))
        context = letters.new_zeros(batch, WIDTH)
        frames, ends, weights = [], [], []
        for _ in range(FRAMES):
            x = torch.cat((self.before(frame), context), dim=-1)
            h1, c1 = self.attention_cell(x, (h1, c1))
            both = torch.cat((weight.unsqueeze(1), total.unsqueeze(1)), dim=1)
            context, weight = self.attention(h1, letters, keys, both, hidden)
            total = total + weight
            h2, c2 = self.cell(torch.cat((h1, context), dim=-1), (h2, c2))
            y = torch.cat((h2, context), dim=1)
            frame = self.frame(y)
            frames.append(frame)
            ends.append(self.end(y).squeeze(1))
            weights.append(weight)
        spectrogram = torch.stack(frames).permute(1, 2, 0).contiguous()
        better = spectrogram + self.after(spectrogram)
        return spectrogram, better, torch.stack(ends, dim=1), torch.stack(weights, dim=1)


def build() -> nn.Module:
    torch.manual_seed(0)
    return Spoken().eval()
