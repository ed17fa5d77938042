"""Optical flow as RAFT: pixels compared with all pixels, looked up by a recurrent unit."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

HEIGHT, WIDTH = 16, 20  # of features: an eighth of the pictures'
FEATURES = 64
HIDDEN = 48
LEVELS = 3
REACH = 3
STEPS = 4


def features(outputs: int) -> nn.Sequential:
    parts: list[nn.Module] = []
    for before, after in ((3, 32), (32, 48), (48, 64)):
        parts += [nn.Conv2d(before, after, 3, 2, 1), nn.InstanceNorm2d(after), nn.ReLU()]
        parts += [nn.Conv2d(after, after, 3, 1, 1), nn.InstanceNorm2d(after), nn.ReLU()]
    return nn.Sequential(*parts, nn.Conv2d(64, outputs, 1))


class Update(nn.Module):
    """A recurrent unit of convolutions, and what it adds to the flow."""

    def __init__(self) -> None:
        super().__init__()
        seen = LEVELS * (2 * REACH + 1) ** 2
        self.compared = nn.Conv2d(seen, 48, 1)
        self.moved = nn.Sequential(nn.Conv2d(2, 32, 7, padding=3), nn.ReLU())
        self.joined = nn.Conv2d(48 + 32, 46, 3, padding=1)
        inputs = HIDDEN + HIDDEN + 48
        self.update, self.reset, self.fresh = (
            nn.Conv2d(inputs, HIDDEN, 3, padding=1) for _ in range(3)
        )
        self.flow = nn.Sequential(
            nn.Conv2d(HIDDEN, 64, 3, padding=1), nn.ReLU(), nn.Conv2d(64, 2, 3, padding=1)
        )

    def forward(
        self, hidden: Tensor, context: Tensor, seen: Tensor, flow: Tensor
    ) -> tuple[Tensor, Tensor]:
        joined = torch.cat([self.compared(seen).relu(), self.moved(flow)], 1)
        x = torch.cat([context, self.joined(joined).relu(), flow], 1)
        both = torch.cat([hidden, x], 1)
        update, reset = self.update(both).sigmoid(), self.reset(both).sigmoid()
        fresh = self.fresh(torch.cat([reset * hidden, x], 1)).tanh()
        hidden = (1 - update) * hidden + update * fresh
        return hidden, self.flow(hidden)


class Matching(nn.Module):
    """float32[batch, 3, 128, 160], twice, to float32[batch, 2, 128, 160]"""

    places: Tensor
    window: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.features, self.context = features(FEATURES), features(2 * HIDDEN)
        self.update = Update()
        rows, columns = torch.meshgrid(
            torch.arange(float(HEIGHT)), torch.arange(float(WIDTH)), indexing="ij"
        )
        self.register_buffer("places", torch.stack([columns, rows]))
        steps = torch.arange(-REACH, REACH + 1.0)
        self.register_buffer("window", torch.cartesian_prod(steps, steps))

    def lookup(self, pyramid: list[Tensor], places: Tensor) -> Tensor:
        """What is around the places, at each level."""
        seen = []
        for level, compared in enumerate(pyramid):
            at = places.permute(0, 2, 3, 1).reshape(-1, 1, 1, 2) / 2**level
            at = at + self.window.view(1, 7, 7, 2)
            size = at.new_tensor([compared.shape[3] - 1, compared.shape[2] - 1])
            found = functional.grid_sample(compared, 2 * at / size - 1, align_corners=True)
            seen.append(found.view(-1, HEIGHT, WIDTH, 49))
        return torch.cat(seen, -1).permute(0, 3, 1, 2)

    def forward(self, first: Tensor, second: Tensor) -> Tensor:
        one, other = self.features(first).flatten(2), self.features(second).flatten(2)
        compared = one.transpose(1, 2) @ other / FEATURES**0.5
        pyramid = [compared.reshape(-1, 1, HEIGHT, WIDTH)]
        for _ in range(LEVELS - 1):
            pyramid.append(functional.avg_pool2d(pyramid[-1], 2))
        hidden, context = self.context(first).chunk(2, 1)
        hidden, context = hidden.tanh(), context.relu()
        flow = torch.zeros_like(self.places).expand(first.shape[0], -1, -1, -1)
        for _ in range(STEPS):
            seen = self.lookup(pyramid, self.places + flow)
            hidden, more = self.update(hidden, context, seen, flow)
            flow = flow + more
        return 8 * functional.interpolate(flow, scale_factor=8, mode="bilinear", align_corners=True)


def build() -> nn.Module:
    torch.manual_seed(0)
    return Matching().eval()
