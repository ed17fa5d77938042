"""Small models of each kind, as the emulator is slow."""

import torch
from torch import Tensor, nn
from torch.nn import functional

WIDTH = 16


class Mlp(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(8, WIDTH), nn.GELU(), nn.Linear(WIDTH, 4))

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.layers(x)
        return y


class Products(nn.Module):
    """A product with something fused into it, one of a batch, and a convolution to one pixel: all
    with as many rows as the input.
    """

    weights: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(24, WIDTH)
        self.convolution = nn.Conv2d(3, 8, 3)
        self.register_buffer("weights", torch.randn(2, WIDTH, 8))

    def forward(self, x: Tensor, image: Tensor) -> tuple[Tensor, ...]:
        """X [rows, 24], image [rows, 3, 3, 3] -> [rows, 16], [2, rows, 8], [rows, 8, 1, 1]."""
        y = functional.relu(self.linear(x))
        return y, torch.bmm(y.expand(2, -1, -1), self.weights), self.convolution(image)


class Cnn(nn.Module):
    """A full convolution with a stride, a depthwise one and a pointwise one."""

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 8, 3, stride=2, padding=1, bias=False),
            nn.BatchNorm2d(8),
            nn.ReLU(),
            nn.Conv2d(8, 8, 3, padding=1, groups=8),
            nn.Hardswish(),
            nn.Conv2d(8, WIDTH, 1),
        )
        self.classes = nn.Linear(WIDTH, 5)

    def forward(self, image: Tensor) -> Tensor:
        y: Tensor = self.classes(self.features(image).mean((2, 3)))
        return y


class Audio(nn.Module):
    """Convolutions over time, dilated and in groups, cells of recurrent layers, and back to the
    length of the input.
    """

    def __init__(self) -> None:
        super().__init__()
        self.down = nn.Conv1d(2, 8, 4, stride=2, padding=1)
        self.wide = nn.Conv1d(8, 8, 3, padding="same", dilation=3, groups=2)
        self.first = nn.GRUCell(8, 8, bias=False)
        self.second = nn.LSTMCell(8, 8)
        self.up = nn.ConvTranspose1d(8, 2, 5, stride=2, padding=2, output_padding=1)

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        """X [batch, 2, 2 * steps] -> [batch, 2, 2 * steps], [batch, 8]."""
        y = functional.relu(self.wide(self.down(x)))
        state, _ = self.second(self.first(y.mean(-1)))
        return self.up(y + state.unsqueeze(-1)), state


class Bert(nn.Module):
    """One layer of an encoder with a mask of padding."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens = nn.Embedding(50, WIDTH)
        self.places = nn.Embedding(32, WIDTH)
        self.norm = nn.LayerNorm(WIDTH)
        self.layer = Layer()

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        x = self.norm(self.tokens(ids) + self.places(torch.arange(ids.shape[1])))
        y: Tensor = self.layer(x, mask[:, None, None, :])
        weight = mask.unsqueeze(-1).to(y.dtype)
        return (y * weight).sum(1) / weight.sum(1).clamp(min=1)


class Layer(nn.Module):
    def __init__(self, heads: int = 2) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)
        self.norms = nn.ModuleList(nn.LayerNorm(WIDTH) for _ in range(2))
        self.mlp = nn.Sequential(
            nn.Linear(WIDTH, 2 * WIDTH), nn.GELU(), nn.Linear(2 * WIDTH, WIDTH)
        )

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        batch, seq, _ = x.shape
        qkv = self.qkv(x).view(batch, seq, 3, self.heads, WIDTH // self.heads)
        query, key, value = qkv.permute(2, 0, 3, 1, 4)
        attended = functional.scaled_dot_product_attention(query, key, value, attn_mask=mask)
        x = self.norms[0](x + self.out(attended.transpose(1, 2).reshape(batch, seq, WIDTH)))
        y: Tensor = self.norms[1](x + self.mlp(x))
        return y


class Decoder(nn.Module):
    """One token per call; keys and values stay in the model's state."""

    keys: Tensor
    values: Tensor
    count: Tensor

    def __init__(self, longest: int = 8) -> None:
        super().__init__()
        self.table = nn.Embedding(20, WIDTH)
        self.query, self.key, self.value = (nn.Linear(WIDTH, WIDTH) for _ in range(3))
        self.register_buffer("keys", torch.zeros(longest, WIDTH))
        self.register_buffer("values", torch.zeros(longest, WIDTH))
        self.register_buffer("count", torch.zeros(1, dtype=torch.int64))

    def forward(self, token: Tensor) -> Tensor:
        x = self.table(token)
        self.keys.index_copy_(0, self.count, self.key(x))
        self.values.index_copy_(0, self.count, self.value(x))
        seen = torch.arange(self.keys.shape[0]) <= self.count
        self.count.add_(1)
        scores = (self.query(x) @ self.keys.T).masked_fill(~seen, float("-inf"))
        logits: Tensor = torch.softmax(scores, -1) @ self.values @ self.table.weight.T
        return logits


class Attention(nn.Module):
    """Causal attention in bfloat16, with half as many heads of keys and values."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv = nn.Linear(32, 64, dtype=torch.bfloat16)

    def forward(self, x: Tensor) -> Tensor:
        batch, seq, _ = x.shape
        heads = self.qkv(x).view(batch, seq, 4, 16).transpose(1, 2)
        query, key, value = heads[:, :2], heads[:, 2:3], heads[:, 3:]
        y: Tensor = functional.scaled_dot_product_attention(
            query, key.expand_as(query), value.expand_as(query), is_causal=True
        )
        return y


class Norms(nn.Module):
    """Convolutions and normalisations in bfloat16."""

    def __init__(self) -> None:
        super().__init__()
        self.steps = nn.Sequential(
            nn.Conv2d(4, WIDTH, 3, padding=1),
            nn.GroupNorm(4, WIDTH),
            nn.SiLU(),
            nn.Conv2d(WIDTH, WIDTH, 1),
        ).bfloat16()
        self.last = nn.RMSNorm(WIDTH, dtype=torch.bfloat16)

    def forward(self, image: Tensor) -> Tensor:
        y: Tensor = self.last(self.steps(image).movedim(1, -1))
        return y


class Resized(nn.Module):
    """Windows and points in images of any size: more or fewer pixels than in the results."""

    points: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("points", torch.rand(1, 2, 2, 3, 3) * 3 - 1.5)

    def forward(self, image: Tensor) -> tuple[Tensor, ...]:
        """Image [batch, 2, height, width] -> results of fixed sizes, and one of half the size."""
        largest = functional.adaptive_max_pool2d(image, 3, return_indices=True)
        mean = functional.adaptive_avg_pool2d(image, (2, 3))
        smooth = [
            functional.interpolate(image, (5, 6), mode=mode, antialias=True, align_corners=corners)
            for mode, corners in (("bilinear", False), ("bicubic", True))
        ]
        half = functional.interpolate(image, scale_factor=0.5, mode="bicubic", antialias=True)
        points = self.points.expand(image.shape[0], -1, -1, -1, -1)
        sampled = functional.grid_sample(
            image.unsqueeze(1), points, padding_mode="reflection", align_corners=True
        )
        return *largest, mean, *smooth, half, sampled


class Lookup(nn.Module):
    """Embeddings and indices, which may be out of range."""

    def __init__(self) -> None:
        super().__init__()
        self.rows = nn.Embedding(12, WIDTH, padding_idx=0)

    def forward(self, ids: Tensor, table: Tensor, order: Tensor) -> tuple[Tensor, Tensor]:
        """Ids [batch, n], table [rows, 8], order [batch, 3] -> [batch, 16], [batch, 3, 8]."""
        rows: Tensor = self.rows(ids)
        picked = table[order]
        return rows.amax(1), picked * torch.gather(picked, 2, order.unsqueeze(-1).clamp(0, 7))


class Router(nn.Module):
    """A mixture of experts whose rows go to their two best experts, and a sampler of the most
    likely tokens. Scores that tie would be in any order: there are none among random numbers.
    """

    def __init__(self, experts: int = 4) -> None:
        super().__init__()
        self.gate = nn.Linear(8, experts)
        self.experts = nn.Parameter(torch.randn(experts, 8, 8) / 3)
        self.vocabulary = nn.Linear(8, 20)

    def forward(self, x: Tensor, point: Tensor) -> tuple[Tensor, ...]:
        """X [rows, 8], point [rows] in 0..1 -> [rows, 8], tokens [rows], loads [experts],
        slots [rows, 2], taken [experts, rows].
        """
        weights, chosen = torch.topk(torch.softmax(self.gate(x), -1), 2)
        every = torch.einsum("rd,edf->ref", x, self.experts)
        picked = torch.gather(every, 1, chosen.unsqueeze(-1).expand(-1, -1, 8))
        mixed = (picked * weights.unsqueeze(-1)).sum(1)

        # The place of each row in the queue of its expert, and the load of each expert.
        hits = torch.zeros_like(self.gate(x), dtype=torch.int64).scatter(1, chosen, 1)
        slots = (hits.cumsum(0) - 1).gather(1, chosen)
        loads = torch.zeros(hits.shape[1]).scatter_add(0, chosen.flatten(), weights.flatten())
        taken = torch.zeros(hits.shape[1], x.shape[0])
        rows = torch.arange(x.shape[0])
        taken = taken.index_put((chosen[:, 0], rows), weights[:, 0])
        taken = taken.index_put((chosen[:, 1], rows), weights[:, 1], accumulate=True)

        likely, order = torch.sort(torch.softmax(self.vocabulary(mixed), -1), -1, descending=True)
        kept = likely.masked_fill(likely.cumsum(-1) - likely > 0.7, 0)
        until = kept.cumsum(-1)
        drawn = (until < point.unsqueeze(-1) * until[:, -1:]).sum(-1, keepdim=True)
        tokens = order.gather(1, drawn).squeeze(-1)
        return mixed, tokens, loads, slots, taken


class Numbers(nn.Module):
    """Numbers that vary from call to call, one of them a size."""

    def forward(self, x: Tensor, k: int, scale: float) -> tuple[Tensor, Tensor]:
        """X [n], at least 8 elements, k in 1..8 -> [n], [k]."""
        return x * scale + k, x[:k] * k


class Draws(nn.Module):
    """Random numbers."""

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        """X [rows, 6] -> noise [rows, 6], integers [8], rows of x that were drawn [rows]."""
        drawn = torch.multinomial(torch.softmax(x, -1), 1).squeeze(-1)
        return torch.randn_like(x), torch.randint(0, 1000, (8,)), drawn


class Groups(nn.Module):
    """Reductions of the elements that go to one of three places, which may be out of range.

    The places are counted from the last one: those that an input itself has are checked before
    the call.
    """

    def forward(self, x: Tensor, from_last: Tensor) -> tuple[Tensor, ...]:
        """X [rows, 4], from_last [rows, 4] -> [3, 4] of each."""
        to = 2 - from_last
        start = torch.ones(3, 4)
        reduced = (start.scatter_reduce(0, to, x, kind) for kind in ("amax", "prod", "mean"))
        added = start.bfloat16().scatter_add(0, to, x.bfloat16())
        return (*reduced, added, to.new_zeros(3, 4).scatter_add(0, to, to))


class Ranks(nn.Module):
    """Rows that one block of threads can't sort."""

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        """X [rows, n] -> [rows, n], [rows, n], [rows, 3], [rows]."""
        ordered, places = torch.sort(x, dim=-1, descending=True, stable=True)
        least = torch.topk(x, 3, largest=False).values
        return ordered, places, least, torch.median(x, -1).values


class Routes(nn.Module):
    """A method with variants, and one without."""

    def twice(self, x: Tensor) -> Tensor:
        """X [n] -> [n]."""
        return x * 2

    def blend(self, x: Tensor, other: Tensor | None = None) -> tuple[Tensor, ...]:
        """X [n], other [n] -> [n], and the mean where there is another."""
        if other is None:
            return (x + 1,)
        return x * other, (x + other) / 2
