"""A decoder with a growing cache, which is None at first, as models of transformers have it."""

import torch
from torch import Tensor, nn

WIDTH = 8
Cache = tuple[Tensor, Tensor]


class Decoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(32, WIDTH)
        self.query, self.key, self.value = (nn.Linear(WIDTH, WIDTH) for _ in range(3))

    def forward(self, tokens: Tensor, past: Cache | None = None) -> tuple[Tensor, Cache]:
        """Tokens [1, new], keys and values [1, past, 8] -> logits [1, new, 32], both longer."""
        x = self.table(tokens)
        keys, values = self.key(x), self.value(x)
        if past is not None:
            keys, values = torch.cat([past[0], keys], 1), torch.cat([past[1], values], 1)
        new, total = x.shape[1], keys.shape[1]
        seen = torch.arange(total) <= torch.arange(new).unsqueeze(-1) + (total - new)
        scores = self.query(x) @ keys.transpose(1, 2)
        attention = torch.softmax(scores.masked_fill(~seen, float("-inf")), dim=-1)
        logits: Tensor = attention @ values @ self.table.weight.T
        return logits, (keys, values)
