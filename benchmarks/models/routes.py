"""Short tours of cities, as a pointer network: attention picks the next city not yet seen."""

from __future__ import annotations

import torch
from torch import Tensor, nn

CITIES = 20
WIDTH = 512
CLIP = 10.0


class Pointer(nn.Module):
    """Scores of places for a query, by the sum of both within a tanh."""

    def __init__(self) -> None:
        super().__init__()
        self.queries, self.keys = nn.Linear(WIDTH, WIDTH), nn.Conv1d(WIDTH, WIDTH, 1)
        self.vector = nn.Parameter(torch.randn(WIDTH) * WIDTH**-0.5)

    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        summed = torch.tanh(self.queries(query).unsqueeze(2) + keys)
        return torch.einsum("d,bdn->bn", self.vector, summed)


class Routes(nn.Module):
    """float32[batch, 20, 2] to float32[batch, 20]: the logarithms of the picks' probabilities"""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Linear(2, WIDTH, bias=False)
        self.encoder = nn.LSTM(WIDTH, WIDTH, 2, batch_first=True)
        self.cell = nn.LSTMCell(WIDTH, WIDTH)
        self.start = nn.Parameter(torch.randn(WIDTH))
        self.glimpse, self.pointer = Pointer(), Pointer()
        # Weights large enough that the best city is far better than the second.
        nn.init.normal_(self.embedding.weight, std=4.0)
        for name, weight in self.encoder.named_parameters():
            if name.startswith("weight"):
                nn.init.normal_(weight, std=2.3 * WIDTH**-0.5)
        for pointer in (self.glimpse, self.pointer):
            nn.init.normal_(pointer.keys.weight, std=3 * WIDTH**-0.5)
            nn.init.normal_(pointer.queries.weight, std=0.5 * WIDTH**-0.5)
        nn.init.normal_(self.pointer.vector, std=WIDTH**-0.5)

    def forward(self, places: Tensor) -> Tensor:
        x = self.embedding(places)
        encoded, (hidden, cell) = self.encoder(x)
        found = encoded.transpose(1, 2)
        glimpsed, pointed = self.glimpse.keys(found), self.pointer.keys(found)
        h, c = hidden[-1], cell[-1]
        current = self.start.expand(places.shape[0], -1)
        seen = torch.zeros_like(places[..., 0])
        picks = []
        for _ in range(CITIES):
            h, c = self.cell(current, (h, c))
            blocked = seen > 0
            scores = self.glimpse(h, glimpsed).masked_fill(blocked, float("-inf"))
            query = torch.einsum("bn,bdn->bd", scores.softmax(-1), glimpsed)
            scores = CLIP * torch.tanh(self.pointer(query, pointed))
            logs = scores.masked_fill(blocked, float("-inf")).log_softmax(-1)
            pick = logs.argmax(-1, keepdim=True)
            picks.append(logs.gather(1, pick))
            seen = seen.scatter(1, pick, 1.0)
            current = x.gather(1, pick.unsqueeze(-1).expand(-1, -1, WIDTH)).squeeze(1)
        return torch.cat(picks, 1)


def build() -> nn.Module:
    torch.manual_seed(0)
    return Routes().eval()
