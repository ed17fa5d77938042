"""Clicks as xDeepFM and DCN-v2 guess them: products of embeddings, cross layers, and an MLP."""

from __future__ import annotations

import torch
from torch import Tensor, nn

FIELDS = 26
ROWS = 1000
WIDTH = 16
CROSSES = 3
MAPS = (200, 200, 200)
LAYERS = (400, 400, 400)


class Crosses(nn.Module):
    """The features times a linear layer of the features so far, which are added again."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(
            nn.Linear(FIELDS * WIDTH, FIELDS * WIDTH) for _ in range(CROSSES)
        )

    def forward(self, x: Tensor) -> Tensor:
        start = x
        for layer in self.layers:
            x = start * layer(x) + x
        return x


class Interactions(nn.Module):
    """Outer products with the embeddings; a half of each result is kept, the other goes on."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList()
        inputs, kept = FIELDS, 0
        for i, maps in enumerate(MAPS):
            layer = nn.Conv1d(FIELDS * inputs, maps, 1)
            nn.init.kaiming_normal_(layer.weight)
            self.layers.append(layer)
            inputs = maps // 2
            kept += maps if i + 1 == len(MAPS) else inputs
        self.head = nn.Linear(kept, 1)

    def forward(self, x: Tensor) -> Tensor:
        hidden, kept = x, []
        for i, layer in enumerate(self.layers):
            products = torch.einsum("bhd,bmd->bhmd", hidden, x)
            y = layer(products.reshape(-1, hidden.shape[1] * FIELDS, WIDTH)).relu()
            if i + 1 < len(MAPS):
                hidden, y = torch.split(y, [MAPS[i] // 2] * 2, 1)
            kept.append(y)
        result: Tensor = self.head(torch.cat(kept, 1).sum(-1))
        return result


class Clicks(nn.Module):
    """int64[batch, 16, 26] to the probabilities of clicks: float32[batch, 16]"""

    starts: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("starts", torch.arange(FIELDS) * ROWS)
        self.embeddings = nn.Embedding(FIELDS * ROWS, WIDTH)
        self.weights = nn.Embedding(FIELDS * ROWS, 1)
        nn.init.normal_(self.weights.weight, std=0.1)
        self.crosses = Crosses()
        self.interactions = Interactions()
        parts: list[nn.Module] = []
        inputs = FIELDS * WIDTH
        for width in LAYERS:
            parts += [nn.Linear(inputs, width), nn.BatchNorm1d(width), nn.ReLU(), nn.Dropout(0.2)]
            inputs = width
        self.layers = nn.Sequential(*parts)
        self.head = nn.Linear(FIELDS * WIDTH + inputs, 1)

    def forward(self, fields: Tensor) -> Tensor:
        batch, samples, _ = fields.shape
        places = fields.view(-1, FIELDS) + self.starts
        embedded = self.embeddings(places)
        flat = embedded.view(-1, FIELDS * WIDTH)
        both = torch.cat([self.crosses(flat), self.layers(flat)], -1)
        y = self.weights(places).sum(1) + self.interactions(embedded) + self.head(both)
        result: Tensor = torch.sigmoid(y.squeeze(1)).view(batch, samples)
        return result


def build() -> nn.Module:
    torch.manual_seed(0)
    return Clicks().eval()
