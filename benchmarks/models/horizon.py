"""A forecast as the Temporal Fusion Transformer makes it: gates, chosen variables, and an LSTM."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

WIDTH = 160
HEADS = 4
BEFORE = 168
AFTER = 24
SEEN = 8
KNOWN = 4
KINDS = (369, 24)
QUANTILES = 3


class Gate(nn.Module):
    """A gated linear unit, added to what came before."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.layer, self.norm = nn.Linear(inputs, 2 * outputs), nn.LayerNorm(outputs)

    def forward(self, x: Tensor, before: Tensor) -> Tensor:
        result: Tensor = self.norm(functional.glu(self.layer(x), dim=-1) + before)
        return result


class Residual(nn.Module):
    """Two layers and a gate; a context may tell the first one more."""

    def __init__(self, inputs: int = WIDTH, outputs: int = WIDTH, context: bool = False) -> None:
        super().__init__()
        self.same = nn.Linear(inputs, outputs) if inputs != outputs else nn.Identity()
        self.first, self.second = nn.Linear(inputs, WIDTH), nn.Linear(WIDTH, WIDTH)
        self.context = nn.Linear(WIDTH, WIDTH, bias=False) if context else None
        self.gate = Gate(WIDTH, outputs)

    def forward(self, x: Tensor, context: Tensor | None = None) -> Tensor:
        y = self.first(x)
        if self.context is not None and context is not None:
            y = y + self.context(context)
        y = self.second(functional.elu(y))
        result: Tensor = self.gate(y, self.same(x))
        return result


class Selection(nn.Module):
    """float32[..., count, width] to float32[..., width]: each variable's layers, weighted"""

    def __init__(self, count: int, context: bool) -> None:
        super().__init__()
        self.weights = Residual(count * WIDTH, count, context)
        self.variables = nn.ModuleList(Residual() for _ in range(count))

    def forward(self, x: Tensor, context: Tensor | None = None) -> Tensor:
        weights = self.weights(x.flatten(-2), context).softmax(-1).unsqueeze(-1)
        parts = [layers(x[..., i, :]) for i, layers in enumerate(self.variables)]
        result: Tensor = (weights * torch.stack(parts, -2)).sum(-2)
        return result


class Attention(nn.Module):
    """Heads with queries and keys of their own, and the same values: their mean can be read."""

    hidden: Tensor

    def __init__(self) -> None:
        super().__init__()
        part = WIDTH // HEADS
        self.queries = nn.ModuleList(nn.Linear(WIDTH, part) for _ in range(HEADS))
        self.keys = nn.ModuleList(nn.Linear(WIDTH, part) for _ in range(HEADS))
        self.values, self.outputs = nn.Linear(WIDTH, part), nn.Linear(part, WIDTH, bias=False)
        later = torch.ones(AFTER, BEFORE + AFTER, dtype=torch.bool).triu(BEFORE + 1)
        self.register_buffer("hidden", later)

    def forward(self, x: Tensor) -> Tensor:
        values, found = self.values(x), []
        for queries, keys in zip(self.queries, self.keys, strict=True):
            q, k = queries(x[:, BEFORE:]), keys(x)
            scores = torch.bmm(q, k.permute(0, 2, 1)) / (WIDTH // HEADS) ** 0.5
            found.append(torch.bmm(scores.masked_fill(self.hidden, -1e9).softmax(2), values))
        result: Tensor = self.outputs(torch.stack(found, 2).mean(2))
        return result


class Horizon(nn.Module):
    """float32[batch, 168, 8], float32[batch, 24, 4] and int64[batch, 2] to float32[batch, 24, 3]"""

    def __init__(self) -> None:
        super().__init__()
        self.kinds = nn.ModuleList(nn.Embedding(count, WIDTH) for count in KINDS)
        self.seen = nn.ModuleList(nn.Linear(1, WIDTH) for _ in range(SEEN))
        self.known = nn.ModuleList(nn.Linear(1, WIDTH) for _ in range(KNOWN))
        self.of_kinds = Selection(len(KINDS), False)
        self.of_seen, self.of_known = Selection(SEEN, True), Selection(KNOWN, True)
        self.contexts = nn.ModuleList(Residual() for _ in range(4))
        self.reader = nn.LSTM(WIDTH, WIDTH, batch_first=True)
        self.writer = nn.LSTM(WIDTH, WIDTH, batch_first=True)
        self.enriched, self.last = Residual(context=True), Residual()
        self.attention = Attention()
        self.gates = nn.ModuleList(Gate(WIDTH, WIDTH) for _ in range(3))
        self.head = nn.Linear(WIDTH, QUANTILES)

    def forward(self, seen: Tensor, known: Tensor, kinds: Tensor) -> Tensor:
        fixed = self.of_kinds(torch.stack([e(kinds[:, i]) for i, e in enumerate(self.kinds)], 1))
        choice, more, hidden, cell = (layers(fixed) for layers in self.contexts)
        before = torch.stack([f(seen[..., i, None]) for i, f in enumerate(self.seen)], 2)
        after = torch.stack([f(known[..., i, None]) for i, f in enumerate(self.known)], 2)
        before = self.of_seen(before, choice.unsqueeze(1).expand(-1, BEFORE, -1))
        after = self.of_known(after, choice.unsqueeze(1).expand(-1, AFTER, -1))
        read, state = self.reader(before, (hidden.unsqueeze(0), cell.unsqueeze(0)))
        written, _ = self.writer(after, state)
        x = self.gates[0](torch.cat([read, written], 1), torch.cat([before, after], 1))
        y = self.enriched(x, more.unsqueeze(1).expand(-1, BEFORE + AFTER, -1))
        y = self.gates[1](self.attention(y), y[:, BEFORE:])
        result: Tensor = self.head(self.gates[2](self.last(y), x[:, BEFORE:]))
        return result


def build() -> nn.Module:
    torch.manual_seed(0)
    return Horizon().eval()
