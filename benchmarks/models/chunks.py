"""A language model, as Mamba-2: a state space in chunks, products in them and sums between."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

WIDTH = 512
INNER = 2 * WIDTH
SIZE = 64
HEADS = INNER // SIZE
STATE = 128
WORDS = 2048
TOKENS = 256
CHUNK = 64
LAYERS = 2


def segment_sums(x: Tensor) -> Tensor:
    """[..., i, j]: the sum of x after j up to i, and no way from later to earlier."""
    count = x.shape[-1]
    x = x[..., None].expand(*x.shape, count)
    ones = torch.ones(count, count, dtype=torch.bool, device=x.device)
    sums = x.masked_fill(~torch.tril(ones, diagonal=-1), 0).cumsum(dim=-2)
    return sums.masked_fill(~torch.tril(ones), -math.inf)


def scanned(x: Tensor, decay: Tensor, b: Tensor, c: Tensor) -> Tensor:
    """The state space's results, from [batch, tokens, heads, ...]."""
    x, decay, b, c = (y.reshape(-1, TOKENS // CHUNK, CHUNK, *y.shape[2:]) for y in (x, decay, b, c))
    decay = decay.permute(0, 3, 1, 2)
    sums = decay.cumsum(dim=-1)
    within = torch.exp(segment_sums(decay))
    inside = torch.einsum("bclhn,bcshn,bhcls,bcshp->bclhp", c, b, within, x)
    left = torch.exp(sums[..., -1:] - sums)
    states = torch.einsum("bclhn,bhcl,bclhp->bchpn", b, left, x)
    states = torch.cat([torch.zeros_like(states[:, :1]), states], dim=1)
    between = torch.exp(segment_sums(functional.pad(sums[..., -1], (1, 0))))
    states = torch.einsum("bhzc,bchpn->bzhpn", between, states)[:, :-1]
    outside = torch.einsum("bclhn,bchpn,bhcl->bclhp", c, states, torch.exp(sums))
    return (inside + outside).flatten(1, 2)


class Norm(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: Tensor) -> Tensor:
        return x * torch.rsqrt(x.pow(2).mean(dim=-1, keepdim=True) + 1e-5) * self.weight


class Mixer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        width = INNER + 2 * STATE
        self.inputs = nn.Linear(WIDTH, INNER + width + HEADS, bias=False)
        self.filter = nn.Conv1d(width, width, 4, padding=3, groups=width)
        self.outputs = nn.Linear(INNER, WIDTH, bias=False)
        steps = torch.exp(torch.rand(HEADS) * math.log(100) + math.log(0.001))
        self.steps = nn.Parameter(steps + torch.log(-torch.expm1(-steps)))
        self.decays = nn.Parameter(torch.empty(HEADS).uniform_(1, 16).log())
        self.skip = nn.Parameter(torch.ones(HEADS))
        self.norm = Norm(INNER)

    def forward(self, x: Tensor) -> Tensor:
        sizes = [INNER, INNER + 2 * STATE, HEADS]
        gate, x, steps = torch.split(self.inputs(x), sizes, dim=-1)
        x = functional.silu(self.filter(x.transpose(1, 2))[..., :TOKENS].transpose(1, 2))
        x, b, c = torch.split(x, [INNER, STATE, STATE], dim=-1)
        x = x.reshape(-1, TOKENS, HEADS, SIZE)
        steps = functional.softplus(steps + self.steps)
        b, c = (y.unsqueeze(2).expand(-1, -1, HEADS, -1) for y in (b, c))
        y = scanned(x * steps.unsqueeze(-1), -self.decays.exp() * steps, b, c)
        y = (y + x * self.skip.unsqueeze(-1)).flatten(2)
        result: Tensor = self.outputs(self.norm(y * functional.silu(gate)))
        return result


class Chunks(nn.Module):
    """int64[batch, 256] to float32[batch, 256, 2048]"""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(WORDS, WIDTH)
        self.mixers = nn.ModuleList(Mixer() for _ in range(LAYERS))
        self.norms = nn.ModuleList(Norm(WIDTH) for _ in range(LAYERS + 1))
        self.head = nn.Linear(WIDTH, WORDS, bias=False)

    def forward(self, words: Tensor) -> Tensor:
        x = self.words(words)
        for norm, mixer in zip(self.norms, self.mixers):
            x = x + mixer(norm(x))
        result: Tensor = self.head(self.norms[-1](x))
        return result


def build() -> nn.Module:
    torch.manual_seed(0)
    return Chunks().eval()
