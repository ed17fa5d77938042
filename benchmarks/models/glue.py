"""Points of two pictures matched, as SuperGlue: a graph network, and Sinkhorn's iterations."""

from __future__ import annotations

import itertools
import math

import torch
from torch import Tensor, nn

WIDTH = 256
HEADS = 4
LAYERS = 6
ITERATIONS = 20
PICTURE = (640, 480)


def layers(*widths: int) -> nn.Sequential:
    parts: list[nn.Module] = []
    for inputs, outputs in itertools.pairwise(widths):
        parts += [nn.Conv1d(inputs, outputs, 1), nn.BatchNorm1d(outputs), nn.ReLU()]
    return nn.Sequential(*parts[:-2])


class Layer(nn.Module):
    """What each point learns from others, of the same picture or of the other one."""

    def __init__(self) -> None:
        super().__init__()
        self.query, self.key, self.value, self.merge = (
            nn.Conv1d(WIDTH, WIDTH, 1) for _ in range(4)
        )
        self.layers = layers(2 * WIDTH, 2 * WIDTH, WIDTH)

    def forward(self, x: Tensor, source: Tensor) -> Tensor:
        batch = x.shape[0]
        query, key, value = (
            layer(y).view(batch, WIDTH // HEADS, HEADS, -1)
            for layer, y in ((self.query, x), (self.key, source), (self.value, source))
        )
        scores = torch.einsum("bdhn,bdhm->bhnm", query, key) / (WIDTH // HEADS) ** 0.5
        weights = torch.nn.functional.softmax(scores, dim=-1)
        message = torch.einsum("bhnm,bdhm->bdhn", weights, value)
        message = self.merge(message.contiguous().view(batch, WIDTH, -1))
        result: Tensor = self.layers(torch.cat([x, message], dim=1))
        return result


def transport(scores: Tensor, lost: Tensor) -> Tensor:
    """Logarithms of the best assignment; the last row and column take points without a match."""
    batch, rows, columns = scores.shape
    couplings = torch.cat(
        [
            torch.cat([scores, lost.expand(batch, rows, 1)], -1),
            torch.cat([lost.expand(batch, 1, columns), lost.expand(batch, 1, 1)], -1),
        ],
        1,
    )
    norm = -math.log(rows + columns)
    each = scores.new_full((1,), norm)
    log_rows = torch.cat([each.expand(rows), each + math.log(columns)]).expand(batch, -1)
    log_columns = torch.cat([each.expand(columns), each + math.log(rows)]).expand(batch, -1)
    u, v = torch.zeros_like(log_rows), torch.zeros_like(log_columns)
    for _ in range(ITERATIONS):
        u = log_rows - torch.logsumexp(couplings + v.unsqueeze(1), dim=2)
        v = log_columns - torch.logsumexp(couplings + u.unsqueeze(2), dim=1)
    return couplings + u.unsqueeze(2) + v.unsqueeze(1) - norm


class Glue(nn.Module):
    """Two pictures' points, how sure they are, and what they look like: float32[batch, n, 2],
    float32[batch, n] and float32[batch, 256, n], n of 128 and 96, to float32[batch, 129, 97]"""

    picture: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.places = layers(3, 32, 64, 128, 256, WIDTH)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.outputs = nn.Conv1d(WIDTH, WIDTH, 1)
        self.lost = nn.Parameter(torch.tensor(1.0))
        self.register_buffer("picture", torch.tensor([PICTURE], dtype=torch.float32))
        for module in self.modules():
            if isinstance(module, nn.Conv1d):
                nn.init.kaiming_normal_(module.weight, nonlinearity="linear")
        for module in self.places:
            if isinstance(module, nn.Conv1d):
                nn.init.kaiming_normal_(module.weight, nonlinearity="relu")
        nn.init.normal_(self.outputs.weight, std=0.6 * WIDTH**-0.5)

    def encode(self, points: Tensor, sure: Tensor) -> Tensor:
        scale = self.picture.amax(1, keepdim=True) * 0.7
        places = (points - self.picture / 2) / scale
        result: Tensor = self.places(torch.cat([places.transpose(1, 2), sure.unsqueeze(1)], dim=1))
        return result

    def forward(
        self,
        points: Tensor,
        sure: Tensor,
        looks: Tensor,
        other_points: Tensor,
        other_sure: Tensor,
        other_looks: Tensor,
    ) -> Tensor:
        x = looks + self.encode(points, sure)
        y = other_looks + self.encode(other_points, other_sure)
        for number, layer in enumerate(self.layers):
            to_x, to_y = (y, x) if number % 2 else (x, y)
            x, y = x + layer(x, to_x), y + layer(y, to_y)
        x, y = self.outputs(x), self.outputs(y)
        scores = torch.einsum("bdn,bdm->bnm", x, y) / WIDTH**0.5
        return transport(scores, self.lost)


def build() -> nn.Module:
    torch.manual_seed(0)
    return Glue().eval()
