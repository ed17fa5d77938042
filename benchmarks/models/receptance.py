"""Words as RWKV-4 reads them: sums that fade with time, one word after the other."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

WORDS = 8000
WIDTH = 512
HIDDEN = 4 * WIDTH
LAYERS = 4


def fading_means(fading: Tensor, first: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """Means of the values so far, weighted by exp(key) and by time; sums are kept over exp(top)."""
    total = torch.zeros_like(key[:, 0])
    weight = torch.zeros_like(total)
    top = torch.full_like(total, -1e38)
    means = []
    steps = zip((key + first).unbind(1), key.unbind(1), value.unbind(1), strict=True)
    for k_now, k, v in steps:
        largest = torch.maximum(top, k_now)
        old, new = torch.exp(top - largest), torch.exp(k_now - largest)
        means.append((old * total + new * v) / (old * weight + new))
        faded = top - fading
        top = torch.maximum(faded, k)
        old, new = torch.exp(faded - top), torch.exp(k - top)
        total, weight = old * total + new * v, old * weight + new
    return torch.stack(means, 1)


class Shifted(nn.Module):
    """Mixes each word with the one before, in shares of each channel."""

    def __init__(self, count: int, place: float) -> None:
        super().__init__()
        self.shift = nn.ZeroPad2d((0, 0, 1, -1))
        shares = torch.arange(WIDTH) / WIDTH
        self.shares = nn.ParameterList(
            nn.Parameter(shares ** (1 - place) * (0.5 if n else 1.0)) for n in range(count)
        )

    def forward(self, x: Tensor) -> list[Tensor]:
        before = self.shift(x)
        return [x * share + before * (1 - share) for share in self.shares]


class TimeMix(nn.Module):
    def __init__(self, place: float) -> None:
        super().__init__()
        self.shifted = Shifted(3, place)
        self.receptance, self.key, self.value, self.outputs = (
            nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(4)
        )
        shares = torch.arange(WIDTH) / (WIDTH - 1)
        self.fading = nn.Parameter(-5 + 8 * shares ** (0.7 + 1.3 * place))
        self.first = nn.Parameter(torch.log(torch.tensor(0.3)) + torch.randn(WIDTH) * 0.5)

    def forward(self, x: Tensor) -> Tensor:
        for_receptance, for_key, for_value = self.shifted(x)
        key, value = self.key(for_key), self.value(for_value)
        means = fading_means(torch.exp(self.fading), self.first, key, value)
        result: Tensor = self.outputs(torch.sigmoid(self.receptance(for_receptance)) * means)
        return result


class ChannelMix(nn.Module):
    def __init__(self, place: float) -> None:
        super().__init__()
        self.shifted = Shifted(2, place)
        self.receptance = nn.Linear(WIDTH, WIDTH, bias=False)
        self.key = nn.Linear(WIDTH, HIDDEN, bias=False)
        self.value = nn.Linear(HIDDEN, WIDTH, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        for_receptance, for_key = self.shifted(x)
        value = self.value(torch.square(functional.relu(self.key(for_key))))
        result: Tensor = torch.sigmoid(self.receptance(for_receptance)) * value
        return result


class Receptance(nn.Module):
    """int64[batch, 64] to float32[batch, 64, 8000]"""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(WORDS, WIDTH)
        self.start, self.end = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.norms = nn.ModuleList(nn.LayerNorm(WIDTH) for _ in range(2 * LAYERS))
        self.mixes = nn.ModuleList(
            mix(layer / (LAYERS - 1)) for layer in range(LAYERS) for mix in (TimeMix, ChannelMix)
        )
        self.head = nn.Linear(WIDTH, WORDS, bias=False)
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.normal_(module.weight, std=module.in_features**-0.5)

    def forward(self, words: Tensor) -> Tensor:
        x = self.start(self.words(words))
        for norm, mix in zip(self.norms, self.mixes, strict=True):
            x = x + mix(norm(x))
        result: Tensor = self.head(self.end(x))
        return result


def build() -> nn.Module:
    torch.manual_seed(0)
    return Receptance().eval()
