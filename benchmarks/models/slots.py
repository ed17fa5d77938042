"""Things in a picture, as slot attention: slots compete for pixels, and each is drawn alone."""

from __future__ import annotations

import torch
from torch import Tensor, nn

WIDTH = 64
HIDDEN = 32
SLOTS = 6
SIDE = 64
START = 8
ITERATIONS = 3


class Places(nn.Module):
    """Adds to each pixel a function of its distances to the four borders."""

    grid: Tensor

    def __init__(self, side: int, width: int) -> None:
        super().__init__()
        line = torch.linspace(0, 1, side)
        y, x = torch.meshgrid(line, line, indexing="ij")
        self.register_buffer("grid", torch.stack([y, x, 1 - y, 1 - x], -1))
        self.layer = nn.Linear(4, width)

    def forward(self, x: Tensor) -> Tensor:
        added: Tensor = self.layer(self.grid)
        return x + added.permute(2, 0, 1)


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.mean = nn.Parameter(torch.randn(1, 1, WIDTH) * 0.5)
        self.deviation = nn.Parameter(torch.zeros(1, 1, WIDTH))
        self.norms = nn.ModuleList(nn.LayerNorm(WIDTH) for _ in range(3))
        self.queries, self.keys, self.values = (
            nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(3)
        )
        self.cell = nn.GRUCell(WIDTH, WIDTH)
        self.layers = nn.Sequential(
            nn.Linear(WIDTH, 2 * WIDTH), nn.ReLU(), nn.Linear(2 * WIDTH, WIDTH)
        )

    def forward(self, x: Tensor, noise: Tensor) -> Tensor:
        x = self.norms[0](x)
        keys, values = self.keys(x), self.values(x)
        slots = self.mean + self.deviation.exp() * noise
        for _ in range(ITERATIONS):
            queries = self.queries(self.norms[1](slots)) * WIDTH**-0.5
            scores = torch.einsum("bnd,bsd->bns", keys, queries)
            weights = scores.softmax(-1) + 1e-8
            weights = weights / weights.sum(1, keepdim=True)
            updates = torch.einsum("bns,bnd->bsd", weights, values)
            cell = self.cell(updates.reshape(-1, WIDTH), slots.reshape(-1, WIDTH))
            slots = cell.view(slots.shape)
            slots = slots + self.layers(self.norms[2](slots))
        return slots


class Slots(nn.Module):
    """float32[batch, 3, 64, 64] and float32[batch, 6, 64] to float32[batch, 3, 64, 64]"""

    def __init__(self) -> None:
        super().__init__()
        encoder: list[nn.Module] = []
        for inputs in (3, HIDDEN, HIDDEN, HIDDEN):
            encoder += [nn.Conv2d(inputs, HIDDEN, 5, padding=2), nn.ReLU()]
        self.encoder = nn.Sequential(*encoder, Places(SIDE, HIDDEN))
        self.features = nn.Sequential(
            nn.LayerNorm(HIDDEN), nn.Linear(HIDDEN, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH)
        )
        self.attention = Attention()
        decoder: list[nn.Module] = [Places(START, WIDTH)]
        for inputs in (WIDTH, HIDDEN, HIDDEN):
            decoder += [nn.ConvTranspose2d(inputs, HIDDEN, 5, 2, 2, 1), nn.ReLU()]
        decoder += [nn.ConvTranspose2d(HIDDEN, HIDDEN, 5, 1, 2), nn.ReLU()]
        self.decoder = nn.Sequential(*decoder, nn.ConvTranspose2d(HIDDEN, 4, 3, 1, 1))
        for layer in self.modules():
            if isinstance(layer, nn.Conv2d | nn.ConvTranspose2d):
                terms = layer.in_channels * layer.kernel_size[0] ** 2 / layer.stride[0] ** 2
                nn.init.normal_(layer.weight, std=(2 / terms) ** 0.5)

    def forward(self, pictures: Tensor, noise: Tensor) -> Tensor:
        x = self.encoder(pictures).flatten(2).transpose(1, 2)
        slots = self.attention(self.features(x), noise)
        images = slots.reshape(-1, WIDTH, 1, 1).expand(-1, -1, START, START)
        drawn = self.decoder(images).view(-1, SLOTS, 4, SIDE, SIDE)
        colours, masks = drawn.split([3, 1], 2)
        result: Tensor = (colours * masks.softmax(1)).sum(1)
        return result


def build() -> nn.Module:
    torch.manual_seed(0)
    return Slots().eval()
