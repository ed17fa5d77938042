"""Small models, each with a construct that is easy to compile wrongly."""

from __future__ import annotations

import functools
from typing import Any

import torch
from torch import Tensor, nn
from torch.export import Dim
from torch.nn import functional


class Mlp(nn.Module):
    """Dynamic batch; the hidden layer's vectors have a tail."""

    def __init__(self) -> None:
        super().__init__()
        self.up = nn.Linear(6, 19)
        self.down = nn.Linear(19, 3)

    def forward(self, x: Tensor) -> Tensor:
        hidden: Tensor = self.down(nn.functional.gelu(self.up(x)))
        return hidden.softmax(-1)


class Odd(nn.Module):
    """Tied weights, views of one storage, strides, a counter, constants, all kinds of outputs."""

    count: Tensor
    table: Tensor
    turned: Tensor
    left: Tensor
    right: Tensor
    spread: Tensor
    images: Tensor
    short: Tensor
    flags: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(4, 4)
        self.second = nn.Linear(4, 4, bias=False)
        self.second.weight = self.first.weight
        self.register_buffer("count", torch.zeros(()))
        self.register_buffer("table", torch.arange(4.0), persistent=False)
        self.register_buffer("turned", torch.randn(4, 3).t())
        whole = torch.arange(10.0)
        self.register_buffer("left", whole[:4])
        self.register_buffer("right", whole[2:6])
        self.register_buffer("spread", torch.randn(1, 4).expand(3, 4))
        self.register_buffer("nothing", torch.zeros(0, 4))
        self.register_buffer("flags", torch.tensor([True, False]))
        images = torch.randn(2, 4, 3, 3).to(memory_format=torch.channels_last)
        self.register_buffer("images", images)
        self.register_buffer("short", torch.randn(3).bfloat16())  # a C++ keyword
        self.inputs = nn.Parameter(torch.ones(1))  # also a name in the generated code
        self.plain = torch.ones(3)

    def forward(self, x: Tensor, *, unused: Tensor | None = None) -> dict[str, Any]:
        self.count.add_(1)
        mixed = self.second(self.first(x)) + self.table * self.count + self.plain.sum()
        mixed = mixed + self.left + self.right + self.spread.sum(0)
        mixed = mixed + (self.turned @ torch.ones(4, 1)).sum() + self.images.sum()
        return {
            "mixed": mixed + self.short.sum() + self.inputs,
            "none": None,
            "flags": self.flags,
            "count": self.count,
            "same": x,
            "view": x[:1],
            "number": 3,
            "positive": mixed > 0,
            "best": mixed.argmax(-1),
        }


class Cached(nn.Module):
    """Writes into a cache that the caller passes."""

    def __init__(self) -> None:
        super().__init__()
        self.key = nn.Linear(8, 8)

    def forward(self, x: Tensor, position: Tensor, cache: Tensor) -> Tensor:
        cache.index_copy_(1, position, self.key(x))
        mask = torch.arange(32)[None, :] <= position[:, None]
        return nn.functional.scaled_dot_product_attention(
            x[:, None], cache[:, None], cache[:, None], mask
        )


class Operators(nn.Module):
    """Operators without C functions of their own; some are registered by operators.cpp."""

    basis: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("basis", torch.randn(4, 4))

    def forward(self, x: Tensor, notes: Tensor) -> tuple[Tensor, ...]:
        values, indices = torch.median(x + 1, -1)
        inverse = torch.linalg.inv(x @ self.basis + torch.eye(4))
        distinct, counts = torch.unique(indices, return_counts=True)
        wave = torch.view_as_complex(torch.stack([x, x * 2], -1))
        product = (wave - wave.exp() * wave.conj()) / 2 + torch.full((4,), 1j)
        both = torch.view_as_real(torch.baddbmm(product, wave, wave))
        drawn = torch.multinomial(x[0].softmax(-1), 2)
        batch = x.shape[0]
        tell = functools.partial(torch.ops.aoti_codegen_test.note, dtype=torch.bfloat16)
        tell(notes[:24], values[0], batch, 0.25, True, 'a"\\0é?', [batch, 7], 1.5, device="cpu")
        tell(notes[24:], None, 3, -1e300, False, "", [], device="cpu")
        none, (first, _), last = torch.ops.aoti_codegen_test.copies([x * 3, self.basis])
        assert none is None
        found = (values, inverse, distinct, counts, both, drawn)
        padded = nn.functional.pad((wave * 2).conj(), (1, 2, -1, 3), value=0.5)
        return *found, (wave * 2).conj(), first + 1, last, padded


def mlp() -> tuple[nn.Module, tuple[Any, ...], dict[str, Any], Any]:
    torch.manual_seed(0)
    return Mlp().eval(), (torch.randn(5, 6),), {}, {"x": {0: Dim("batch", min=1, max=64)}}


def odd() -> tuple[nn.Module, tuple[Any, ...], dict[str, Any], Any]:
    torch.manual_seed(0)
    half = Dim("half", min=1, max=8)
    shapes = {"x": {0: 2 * half}, "unused": None}
    return Odd().eval(), (torch.randn(6, 4),), {"unused": None}, shapes


def cached() -> tuple[nn.Module, tuple[Any, ...], dict[str, Any], Any]:
    torch.manual_seed(0)
    length = Dim("length", min=1, max=32)
    args = (torch.randn(1, 7, 8), torch.arange(7), torch.zeros(1, 32, 8))
    return Cached().eval(), args, {}, {"x": {1: length}, "position": {0: length}, "cache": None}


class Numbers(nn.Module):
    """A number that is a size, one that is data, and a parameter that is written to."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(4))

    def forward(self, x: torch.Tensor, n: int, length: torch.Tensor) -> tuple[torch.Tensor, ...]:
        with torch.no_grad():
            self.weight.mul_(2)
        return x[:n] * n + self.weight, x[: length.item()] * 3


def numbers() -> tuple[nn.Module, tuple[Any, ...], dict[str, Any], Any]:
    shapes = {"x": {0: Dim.DYNAMIC}, "n": Dim.DYNAMIC, "length": None}
    return Numbers().eval(), (torch.randn(9, 4), 5, torch.tensor(3)), {}, shapes


class Image(nn.Module):
    """Convolutions with what is fused into them, of images, a line and a volume. The results have
    other layouts than they.
    """

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 20, 3, stride=2, bias=False)
        self.stem_norm = nn.BatchNorm2d(20)
        self.body = nn.Conv2d(20, 20, (4, 2), groups=20)
        self.body_norm = nn.BatchNorm2d(20)
        self.wider = nn.Conv2d(20, 38, 1)
        self.line = nn.Conv1d(20, 6, 3, stride=2)
        self.volume = nn.Conv3d(5, 5, (2, 1, 3), padding=(1, 0, 1), bias=False)
        for norm in (self.stem_norm, self.body_norm):
            for values in (norm.running_mean, norm.bias):
                nn.init.normal_(values)  # type: ignore[arg-type]
            for values in (norm.running_var, norm.weight):
                nn.init.uniform_(values, 0.5, 2)  # type: ignore[arg-type]

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        x = torch.relu_(self.stem_norm(self.stem(x)))
        line = functional.leaky_relu(self.line(functional.pad(x.flatten(2), (2, 0))), 0.1)
        volume = functional.gelu(self.volume(x.view(x.shape[0], 5, 4, *x.shape[2:])))
        y = self.body_norm(self.body(functional.pad(x, (0, 1, 2, 0))))
        y = functional.silu(y) + x[:, :, 1:, :]
        wider = torch.relu(self.wider(y) + functional.pad(y, (0, 0, 0, 0, 0, 18)))
        return y.flatten(1), torch.max_pool2d(y, 2), line, volume + 1, wider


def image() -> tuple[nn.Module, tuple[Any, ...], dict[str, Any], Any]:
    torch.manual_seed(0)
    batch = Dim("batch", min=1, max=8)
    return Image().eval(), (torch.randn(2, 3, 12, 13),), {}, {"x": {0: batch}}


class Dense(nn.Module):
    """Batch norms that follow no convolution, with and without a concatenation before them, and
    attention whose heads come from a convolution, or are between channels, or in rows.
    """

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 20, 3, padding=1)
        self.layers = nn.ModuleList(nn.Conv2d(20 + 18 * i, 18, 1) for i in range(3))
        self.norms = nn.ModuleList(nn.BatchNorm2d(20 + 18 * i, affine=i != 1) for i in range(4))
        self.joined = nn.Conv2d(74, 24, 1)
        self.heads = nn.Conv2d(24, 72, 1, bias=False)
        self.columns = nn.BatchNorm1d(6)
        for norm in (*self.norms, self.columns):
            nn.init.normal_(norm.running_mean)
            nn.init.uniform_(norm.running_var, 0.5, 2)
            if norm.affine:
                nn.init.normal_(norm.bias)
                nn.init.normal_(norm.weight)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        images = [self.stem(x)]
        for norm, layer in zip(self.norms, self.layers):
            images.append(layer(torch.relu(norm(torch.cat(images, 1)))))
        y = self.joined(self.norms[-1](torch.cat(images, dim=1)))
        numbers = self.heads(y).view(-1, 3, 2, 12, y.shape[2] * y.shape[3])
        query, key, value = numbers.transpose(3, 4).unbind(1)
        attended = functional.scaled_dot_product_attention(query, key, value)
        rows = torch.sigmoid(self.heads(y)).flatten(2).transpose(1, 2).reshape(-1, 30, 3, 2, 12)
        query, key, value = (part.permute(0, 2, 3, 1) for part in rows.unbind(2))
        channels = (query @ key.transpose(-2, -1) / 4).softmax(-1) @ value
        row = y.permute(0, 2, 3, 1).unflatten(3, (2, 12)).transpose(2, 3)
        places = row[:, :1] @ row[:, 1:2].mT
        rows = (row @ row.mT / 4 + places).softmax(-1) @ row
        columns = self.columns(y.flatten(2)[:, :6])
        return attended, channels, rows, columns, self.columns(columns[..., 0]), torch.sigmoid(y)


def dense() -> tuple[nn.Module, tuple[Any, ...], dict[str, Any], Any]:
    torch.manual_seed(0)
    batch = Dim("batch", min=1, max=8)
    return Dense().eval(), (torch.randn(2, 3, 6, 5),), {}, {"x": {0: batch}}


class Concatenated(nn.Module):
    """Convolutions whose results are concatenated, with what else may read or return them."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Conv2d(4, 8, 3, padding=1), nn.Conv2d(8, 12, 1)
        self.norm = nn.BatchNorm2d(8)
        self.split, self.inner = nn.Conv2d(24, 10, 1), nn.Conv2d(5, 5, 3, padding=1)
        self.up, self.down = nn.Conv2d(24, 40, 1), nn.Conv2d(40, 6, 1)
        self.filter = nn.Conv2d(40, 40, 3, padding=1, groups=40)
        self.last = nn.Conv2d(21, 3, 1)
        self.line = nn.Conv1d(11, 2, 1)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        a = torch.relu(self.norm(self.first(x)))
        joined = torch.cat([a, self.second(functional.max_pool2d(a, 3, 1, 1)), x], 1)
        parts = [*functional.silu(self.split(joined)).chunk(2, 1)]
        parts.append(parts[1] + torch.relu(self.inner(parts[1])))
        parts.append(self.down(functional.relu6(self.filter(functional.relu6(self.up(joined))))))
        merged = torch.cat(parts, -3)
        last = self.last(merged)
        again = torch.cat([a, last], 1)
        lines = torch.cat([self.line(again.flatten(2)), again.flatten(2)], 1)
        rows = torch.cat([self.last(merged), last], 2)
        return merged, last, again, lines, rows, parts[2]


def concatenated() -> tuple[nn.Module, tuple[Any, ...], dict[str, Any], Any]:
    torch.manual_seed(0)
    batch, height, width = (Dim(name, min=1, max=20) for name in ("batch", "height", "width"))
    args = (torch.randn(2, 4, 7, 9),)
    return Concatenated().eval(), args, {}, {"x": {0: batch, 2: height, 3: width}}


class Enlarged(nn.Module):
    """Images with 4 and 20 channels that become larger, for a convolution and as results, or whose
    pixels are read at some points.
    """

    def __init__(self) -> None:
        super().__init__()
        self.wide = nn.Conv2d(4, 20, 3, padding=1)
        self.wider = nn.Conv2d(4, 68, 1)
        self.narrow = nn.Conv2d(20, 3, 1)
        self.least = nn.Conv2d(17, 2, 1)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        def resized(x: torch.Tensor, align: bool = False, **sizes: Any) -> torch.Tensor:
            return functional.interpolate(x, mode="bilinear", align_corners=align, **sizes)

        wide, wider = self.wide(x), self.wider(x)
        points = x[:, :2].permute(0, 2, 3, 1) * 0.05
        special = points.new_tensor([torch.nan, torch.inf, -torch.inf, 1e20])
        points = torch.where(x[:, 2:].permute(0, 2, 3, 1) > 15, special[:2], points)
        points = torch.where(x[:, :2].permute(0, 2, 3, 1) < -15, special[2:], points)
        return (
            functional.grid_sample(wide, points, align_corners=False),
            self.narrow(functional.grid_sample(wide, points, align_corners=True)),
            functional.grid_sample(wide, points, padding_mode="border", align_corners=True),
            functional.grid_sample(wide, points, padding_mode="border", align_corners=False),
            resized(x, scale_factor=2.0),
            self.narrow(resized(wide, scale_factor=(1.5, 3.0))),
            resized(wide, size=(40, 41)),
            self.narrow(resized(wide, True, size=(33, 21))).relu(),
            resized(x, True, scale_factor=2.0),
            resized(x[:, :, :1, :1], True, size=(1, 5)),
            functional.pixel_shuffle(wide, 2),
            self.least(functional.leaky_relu(functional.pixel_shuffle(wider, 2), 0.1)),
            functional.pixel_shuffle(x.to(torch.int32), 2),
        )


def enlarged() -> tuple[nn.Module, tuple[Any, ...], dict[str, Any], Any]:
    torch.manual_seed(0)
    batch, height, width = (Dim(name, min=1, max=20) for name in ("batch", "height", "width"))
    args = (torch.randn(2, 4, 7, 9),)
    return Enlarged().eval(), args, {}, {"x": {0: batch, 2: height, 3: width}}


class InvertedResidual(nn.Module):
    """A block of three convolutions that is one chain."""

    def __init__(self) -> None:
        super().__init__()
        self.up = nn.Conv2d(12, 40, 1)
        self.filter = nn.Conv2d(40, 40, 3, stride=2, groups=40)
        self.down = nn.Conv2d(40, 20, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = functional.hardswish(self.up(x))
        x = functional.relu6(self.filter(functional.pad(x, (0, 1, 0, 1))))
        return torch.relu(self.down(x))


def inverted_residual() -> tuple[nn.Module, tuple[Any, ...], dict[str, Any], Any]:
    torch.manual_seed(0)
    batch = Dim("batch", min=1, max=8)
    args = (torch.randn(2, 12, 12, 13),)
    return InvertedResidual().eval(), args, {}, {"x": {0: batch}}


def operators() -> tuple[nn.Module, tuple[Any, ...], dict[str, Any], Any]:
    torch.manual_seed(0)
    batch = Dim("batch", min=2, max=9)
    args = (torch.randn(5, 4, 4), torch.zeros(48))
    return Operators().eval(), args, {}, {"x": {0: batch}, "notes": None}
