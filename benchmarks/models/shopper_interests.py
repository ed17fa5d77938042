"""DIN, DIEN and MMoE: a shopper's history attended to by the item, evolved, scored by two tasks."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

ITEMS = 2000
CATEGORIES = 60
USERS = 500
AGES = 8
WIDTH = 18
HISTORY = 24
HIDDEN = 2 * WIDTH
EXPERTS = 6
EXPERT_WIDTH = 64
TASKS = 2


class Dice(nn.Module):
    def __init__(self, size: int, dim: int = 2, epsilon: float = 1e-8) -> None:
        super().__init__()
        assert dim in (2, 3)
        self.bn = nn.BatchNorm1d(size, eps=epsilon)
        self.sigmoid = nn.Sigmoid()
        self.dim = dim
        shape = (size,) if dim == 2 else (size, 1)
        self.alpha = nn.Parameter(torch.randn(shape) * 0.25)

    def forward(self, x: Tensor) -> Tensor:
        if self.dim == 2:
            p = self.sigmoid(self.bn(x))
            out: Tensor = self.alpha * (1 - p) * x + p * x
        else:
            x = torch.transpose(x, 1, 2)
            p = self.sigmoid(self.bn(x))
            out = self.alpha * (1 - p) * x + p * x
            out = torch.transpose(out, 1, 2)
        return out


class AttentionUnit(nn.Module):
    def __init__(self, width: int, softmax: bool) -> None:
        super().__init__()
        self.softmax = softmax
        self.layers = nn.Sequential(
            nn.Linear(4 * width, 80), Dice(80, 3), nn.Linear(80, 40), Dice(40, 3), nn.Linear(40, 1)
        )

    def forward(self, query: Tensor, keys: Tensor, mask: Tensor) -> Tensor:
        queries = query.unsqueeze(1).expand(-1, keys.size(1), -1)
        pairs = torch.cat([queries, keys, queries - keys, queries * keys], dim=-1)
        score = torch.transpose(self.layers(pairs), 1, 2)  # B, 1, T
        mask = mask.unsqueeze(1)
        if self.softmax:
            paddings = torch.ones_like(score) * (-(2**32) + 1)
            return functional.softmax(torch.where(mask, score, paddings), dim=-1)
        return torch.where(mask, score, torch.zeros_like(score))


class AUGRUCell(nn.Module):
    def __init__(self, inputs: int, hidden: int) -> None:
        super().__init__()
        self.weight_ih = nn.Parameter(torch.empty(3 * hidden, inputs))
        self.weight_hh = nn.Parameter(torch.empty(3 * hidden, hidden))
        self.bias_ih = nn.Parameter(torch.zeros(3 * hidden))
        self.register_parameter("bias_hh", None)
        for weight in (self.weight_ih, self.weight_hh):
            nn.init.xavier_normal_(weight, gain=1.5)

    def forward(self, inputs: Tensor, hx: Tensor, att_score: Tensor) -> Tensor:
        gi = functional.linear(inputs, self.weight_ih, self.bias_ih)
        gh = functional.linear(hx, self.weight_hh, None)
        i_r, i_z, i_n = gi.chunk(3, 1)
        h_r, h_z, h_n = gh.chunk(3, 1)
        reset = torch.sigmoid(i_r + h_r)
        update = torch.sigmoid(i_z + h_z)
        new = torch.tanh(i_n + reset * h_n)
        update = att_score.view(-1, 1) * update
        return (1.0 - update) * hx + update * new


class InterestNetwork(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.item = nn.Embedding(ITEMS, WIDTH, padding_idx=0)
        self.category = nn.Embedding(CATEGORIES, WIDTH, padding_idx=0)
        self.user = nn.Embedding(USERS, WIDTH)
        self.age = nn.Embedding(AGES, WIDTH)
        self.din = AttentionUnit(HIDDEN, softmax=False)
        self.extractor = nn.GRU(HIDDEN, HIDDEN, batch_first=True)
        self.dien = AttentionUnit(HIDDEN, softmax=True)
        self.evolution = AUGRUCell(HIDDEN, HIDDEN)
        features = 4 * HIDDEN + 2 * WIDTH + HIDDEN
        self.bn = nn.BatchNorm1d(features)
        self.expert_w = nn.Parameter(torch.randn(EXPERTS, features, EXPERT_WIDTH) / features**0.5)
        self.expert_b = nn.Parameter(torch.zeros(EXPERTS, EXPERT_WIDTH))
        self.gates = nn.ModuleList(nn.Linear(features, EXPERTS, bias=False) for _ in range(TASKS))
        self.towers = nn.ModuleList(
            nn.Sequential(nn.Linear(EXPERT_WIDTH, 32), Dice(32), nn.Linear(32, 1))
            for _ in range(TASKS)
        )

    def forward(
        self, history: Tensor, kinds: Tensor, lengths: Tensor, target: Tensor, profile: Tensor
    ) -> tuple[Tensor, Tensor]:
        mask = torch.arange(HISTORY, device=lengths.device)[None, :] < lengths[:, None]
        past = torch.cat([self.item(history), self.category(kinds)], dim=-1)
        past *= mask.unsqueeze(-1)
        query = torch.cat([self.item(target[:, 0]), self.category(target[:, 1])], dim=-1)
        person = torch.cat([self.user(profile[:, 0]), self.age(profile[:, 1])], dim=-1)

        pooled = torch.matmul(self.din(query, past, mask), past).squeeze(1)

        states, _ = self.extractor(past)
        scores = self.dien(query, states, mask).squeeze(1)
        h = torch.zeros(past.size(0), HIDDEN, dtype=past.dtype, device=past.device)
        evolved = []
        for t, step in enumerate(torch.unbind(states, dim=1)):
            h = self.evolution(step, h, scores[:, t] * HISTORY / 2)
            evolved.append(h)
        last = (lengths - 1).clamp(min=0).view(-1, 1, 1).expand(-1, 1, HIDDEN)
        interest = torch.stack(evolved, dim=1).gather(1, last).squeeze(1)

        mean = past.sum(1) / (lengths.unsqueeze(-1) + 1e-8)
        mean = torch.where(lengths.unsqueeze(-1) > 0, mean, torch.zeros_like(mean))
        x = self.bn(torch.cat([person, query, pooled, interest, query * mean, mean], dim=-1))

        experts = torch.relu(torch.einsum("bf,efh->beh", x, self.expert_w) + self.expert_b)
        logits = []
        for gate, tower in zip(self.gates, self.towers):
            weight = gate(x).softmax(dim=-1)
            logits.append(tower(torch.einsum("be,beh->bh", weight, experts)))
        click, buy = torch.sigmoid(torch.cat(logits, dim=-1)).unbind(-1)
        return torch.stack([click, click * buy], dim=-1), interest


def build() -> nn.Module:
    torch.manual_seed(0)
    model = InterestNetwork()
    for module in model.modules():
        if isinstance(module, nn.BatchNorm1d):
            nn.init.uniform_(module.weight, 0.5, 1.5)
            module.running_mean = torch.randn(module.num_features) * 0.1
            module.running_var = torch.rand(module.num_features) + 0.5
    return model.eval()
