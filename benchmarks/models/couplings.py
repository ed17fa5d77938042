"""Speech to what text tells of it, as VITS: a posterior encoder and couplings, with WaveNets."""

from __future__ import annotations

import torch
from torch import Tensor, nn

BINS = 513
WIDTH = 192
SPEAKERS = 109
VOICE = 256
FRAMES = 64
FLOWS = 4


class Gated(nn.Module):
    """A WaveNet that is not causal: tanh times sigmoid, and each layer adds to the result."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self.filters = nn.ModuleList(
            nn.Conv1d(WIDTH, 2 * WIDTH, 5, padding=2) for _ in range(count)
        )
        self.outputs = nn.ModuleList(
            nn.Conv1d(WIDTH, 2 * WIDTH if i < count - 1 else WIDTH, 1) for i in range(count)
        )
        self.voice = nn.Conv1d(VOICE, 2 * WIDTH * count, 1)

    def forward(self, x: Tensor, mask: Tensor, voice: Tensor) -> Tensor:
        result = torch.zeros_like(x)
        voices = self.voice(voice).split(2 * WIDTH, dim=1)
        for i, (layer, output) in enumerate(zip(self.filters, self.outputs, strict=True)):
            y = layer(x) + voices[i]
            y = torch.tanh(y[:, :WIDTH]) * torch.sigmoid(y[:, WIDTH:])
            y = output(y)
            if i < len(self.filters) - 1:
                x = (x + y[:, :WIDTH]) * mask
                y = y[:, WIDTH:]
            result = result + y
        return result * mask


class Posterior(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.start = nn.Conv1d(BINS, WIDTH, 1)
        self.layers = Gated(16)
        self.end = nn.Conv1d(WIDTH, 2 * WIDTH, 1)

    def forward(
        self, x: Tensor, mask: Tensor, voice: Tensor, noise: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        x = self.layers(self.start(x) * mask, mask, voice)
        mean, deviation = torch.split(self.end(x) * mask, WIDTH, dim=1)
        return (mean + noise * torch.exp(deviation)) * mask, mean, deviation


class Coupling(nn.Module):
    """One half of the channels moves the other."""

    def __init__(self) -> None:
        super().__init__()
        self.start = nn.Conv1d(WIDTH // 2, WIDTH, 1)
        self.layers = Gated(4)
        self.end = nn.Conv1d(WIDTH, WIDTH // 2, 1)

    def forward(self, x: Tensor, mask: Tensor, voice: Tensor) -> Tensor:
        a, b = torch.split(x, [WIDTH // 2] * 2, dim=1)
        mean = self.end(self.layers(self.start(a) * mask, mask, voice)) * mask
        return torch.cat([a, mean + b * mask], dim=1)


class Couplings(nn.Module):
    """float32[batch, 513, 64], int64[batch], int64[batch] and float32[batch, 192, 64] to three
    of float32[batch, 192, 64]: what the flow makes of the sample, its mean, log of its deviation
    """

    def __init__(self) -> None:
        super().__init__()
        self.speakers = nn.Embedding(SPEAKERS, VOICE)
        self.posterior = Posterior()
        self.flows = nn.ModuleList(Coupling() for _ in range(FLOWS))

    def forward(
        self, spectrograms: Tensor, lengths: Tensor, speakers: Tensor, noise: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        places = torch.arange(FRAMES, device=lengths.device)
        mask = (places[None] < lengths[:, None]).unsqueeze(1).to(spectrograms.dtype)
        voice = self.speakers(speakers).unsqueeze(-1)
        x, mean, deviation = self.posterior(spectrograms, mask, voice, noise)
        for flow in self.flows:
            x = torch.flip(flow(x, mask, voice), [1])
        return x, mean, deviation


def build() -> nn.Module:
    torch.manual_seed(0)
    return Couplings().eval()
