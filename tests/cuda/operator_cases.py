"""Operators for docs/cuda_operators.md, each as a function of one tensor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

DTYPES = {
    "float32": torch.float32,
    "bfloat16": torch.bfloat16,
    "float16": torch.float16,
    "float64": torch.float64,
    "int64": torch.int64,
    "int32": torch.int32,
}
ROWS, COLUMNS = 4, 6
_attend = functional.scaled_dot_product_attention


def sample(dtype: str) -> Tensor:
    """All elements differ; half of them are negative. Sums of them are exact in every dtype."""
    generator = torch.Generator().manual_seed(0)
    numbers = torch.randperm(ROWS * COLUMNS, generator=generator) - 11
    x = numbers.view(ROWS, COLUMNS).to(DTYPES[dtype])
    return x / 4 if x.is_floating_point() else x


def _reversed(x: Tensor) -> Tensor:
    """Indices of columns, of x's shape; each occurs once in a row."""
    return torch.arange(COLUMNS, device=x.device).flip(0).expand_as(x)


def _pairs(x: Tensor) -> Tensor:
    """Indices of columns, of x's shape; the half of them occurs twice in a row."""
    return (torch.arange(COLUMNS, device=x.device) // 2).expand_as(x)


def _rows(x: Tensor) -> Tensor:
    return torch.arange(ROWS, device=x.device)


def _row_pairs(x: Tensor) -> Tensor:
    return _rows(x) // 2


def _image(x: Tensor) -> Tensor:
    return x.view(1, 1, ROWS, COLUMNS)


def _scatter_reduce(reduce: str, include_self: bool = True) -> Callable[[Tensor], Any]:
    return lambda x: x.scatter_reduce(1, _pairs(x), x, reduce, include_self=include_self)


def _index_reduce(reduce: str) -> Callable[[Tensor], Any]:
    return lambda x: x.index_reduce(0, _row_pairs(x), x, reduce)


def _upsample(mode: str) -> Callable[[Tensor], Any]:
    return lambda x: functional.interpolate(_image(x), scale_factor=2, mode=mode)


def _smaller(mode: str) -> Callable[[Tensor], Any]:
    return lambda x: functional.interpolate(_image(x), (2, 5), mode=mode, antialias=True)


def _grid(x: Tensor) -> Tensor:
    points = torch.linspace(-1, 1, 2 * COLUMNS, device=x.device).view(1, 2, 3, 2)
    return points.to(x.dtype)


def _gru_cell(x: Tensor) -> Any:
    weights = x.reshape(-1, 2)[:6]
    return torch.gru_cell(x[:, :2], x[:, 2:4], weights, weights.flip(0))


def _lstm_cell(x: Tensor) -> Any:
    weights = x.reshape(-1, 2)[:8]
    state = torch.zeros(ROWS, 2, dtype=x.dtype, device=x.device)
    biases = x[0, :4].repeat(2), x[1, :4].repeat(2)
    return torch.lstm_cell(x[:, :2], (state, x[:, 2:4]), weights, weights.flip(0), *biases)


def _rnn_cell(x: Tensor) -> Any:
    weights = x.reshape(-1, 2)[:2]
    return torch.rnn_tanh_cell(x[:, :2], x[:, 2:4], weights, weights.flip(0))


# operator -> a function of a sample
CASES: dict[str, Callable[[Tensor], Any]] = {
    "adaptive_avg_pool2d": lambda x: functional.adaptive_avg_pool2d(_image(x), (2, 4)),
    "adaptive_max_pool2d (with indices)": lambda x: functional.adaptive_max_pool2d(
        _image(x), (2, 4), return_indices=True
    ),
    "adaptive_avg_pool2d (of large windows)": lambda x: functional.adaptive_avg_pool2d(
        x.view(1, 1, 1, 24).expand(1, 1, 13, 24), (2, 3)
    ),
    "adaptive_avg_pool3d": lambda x: functional.adaptive_avg_pool3d(x.view(1, 4, 2, 3), (3, 1, 2)),
    "adaptive_max_pool2d (of large windows)": lambda x: functional.adaptive_max_pool2d(
        x.view(1, 1, 24).expand(1, 13, 24), (2, 3), return_indices=True
    ),
    "adaptive_max_pool3d (with indices)": lambda x: functional.adaptive_max_pool3d(
        x.view(1, 4, 2, 3), (3, 1, 2), return_indices=True
    ),
    "argsort": lambda x: x.argsort(-1),
    "avg_pool2d": lambda x: functional.avg_pool2d(_image(x), 3, 2, 1),
    "avg_pool3d": lambda x: functional.avg_pool3d(x.view(1, 2, 2, 6), 2),
    "bilinear": lambda x: functional.bilinear(x[:, :2], x[:, 2:5], x.view(4, 2, 3), x[0, :4]),
    "bincount": lambda x: torch.bincount(x.flatten().clamp(0, 5), minlength=6),
    "cdist": lambda x: torch.cdist(x, x.flip(0)),
    "conv1d": lambda x: functional.conv1d(x.view(1, 4, 6), x.view(2, 4, 3)),
    "conv1d (dilated, in groups)": lambda x: functional.conv1d(
        x.view(2, 4, 3), x.view(6, 2, 2), x[0], stride=2, padding=3, dilation=4, groups=2
    ),
    "conv2d": lambda x: functional.conv2d(_image(x), x.view(2, 1, 4, 3), padding=1),
    "conv2d (depthwise)": lambda x: functional.conv2d(
        x.view(1, 2, 2, 6), x.view(2, 1, 2, 6), padding=1, groups=2
    ),
    "conv2d (dilated)": lambda x: functional.conv2d(
        _image(x), x.view(4, 1, 2, 3), padding=(2, 1), dilation=(3, 2)
    ),
    "conv3d": lambda x: functional.conv3d(x.view(1, 1, 2, 2, 6), x.view(2, 1, 2, 2, 3)),
    "conv_transpose1d": lambda x: functional.conv_transpose1d(x[None], x.view(4, 2, 3), stride=2),
    "conv_transpose1d (dilated, in groups)": lambda x: functional.conv_transpose1d(
        x, x.view(4, 2, 3), x[0, :4], stride=4, padding=1, output_padding=3, groups=2, dilation=6
    ),
    "conv_transpose2d": lambda x: functional.conv_transpose2d(
        _image(x), x.view(1, 2, 4, 3), stride=(3, 2), padding=1, output_padding=(2, 1)
    ),
    "cummax": lambda x: torch.cummax(x, -1),
    "cumprod": lambda x: torch.cumprod(x, -1),
    "cumsum": lambda x: torch.cumsum(x, -1),
    "embedding": lambda x: functional.embedding(_row_pairs(x), x),
    "embedding (with max_norm)": lambda x: functional.embedding(
        _row_pairs(x), x.clone(), max_norm=1.0
    ),
    "embedding_bag": lambda x: functional.embedding_bag(_rows(x).view(2, 2), x),
    "gather": lambda x: torch.gather(x, 1, _reversed(x)),
    "gcd": lambda x: torch.gcd(x, x.flip(0)),
    "grid_sample": lambda x: functional.grid_sample(_image(x), _grid(x), align_corners=False),
    "grid_sample (of a volume)": lambda x: functional.grid_sample(
        x.view(1, 1, 2, 3, 4), x.view(1, 2, 2, 2, 3) / 6, align_corners=False
    ),
    "gru_cell": _gru_cell,
    "histc": lambda x: torch.histc(x, 4, 0, 2),
    "index_add": lambda x: x.index_add(0, _row_pairs(x), x),
    "index_copy": lambda x: x.index_copy(0, _rows(x), x * 2),
    "index_put": lambda x: x.index_put((_rows(x),), x * 2),
    "index_put(accumulate=True)": lambda x: x.index_put((_row_pairs(x),), x, accumulate=True),
    "index_reduce(amax)": _index_reduce("amax"),
    "index_reduce(prod)": _index_reduce("prod"),
    "index_select": lambda x: x.index_select(0, _rows(x).flip(0)),
    "isin": lambda x: torch.isin(x, torch.tensor([2, 5])),
    "kthvalue": lambda x: torch.kthvalue(x, 2),
    "logcumsumexp": lambda x: torch.logcumsumexp(x, -1),
    "lstm_cell (without a state)": _lstm_cell,
    "masked_fill": lambda x: x.masked_fill(x > 1, 0),
    "masked_scatter": lambda x: x.masked_scatter(x > 1, x),
    "masked_select": lambda x: x.masked_select(x > 1),
    "matmul": lambda x: x @ x.view(6, 4),
    "matmul (of a batch, added to)": lambda x: torch.baddbmm(
        x.view(2, 3, 4), x.view(2, 3, 4), x[:, :4].expand(2, 4, 4), alpha=2
    ),
    "matmul (sum of two)": lambda x: x @ x.view(6, 4) + x.flip(0) @ x.view(6, 4),
    "max_pool2d (with indices)": lambda x: functional.max_pool2d(
        _image(x), 3, 2, 1, return_indices=True
    ),
    "median": lambda x: (torch.median(x, -1), x.median()),
    "mode": lambda x: torch.mode(x // 3, -1).values,
    "nanmedian": lambda x: torch.nanmedian(torch.where(x > 1, float("nan"), x), -1),
    "nonzero": lambda x: torch.nonzero(x),
    "rnn_cell": _rnn_cell,
    "scaled_dot_product_attention": lambda x: _attend(x, x, x),
    "scaled_dot_product_attention(attn_mask)": lambda x: _attend(x, x, x, x[:, :ROWS]),
    "scaled_dot_product_attention(is_causal=True)": lambda x: _attend(x, x, x, is_causal=True),
    "scatter": lambda x: x.scatter(1, _reversed(x), x * 2),
    "scatter_add": lambda x: x.scatter_add(1, _pairs(x), x),
    **{
        f"scatter_reduce({reduce})": _scatter_reduce(reduce)
        for reduce in ("amax", "amin", "mean", "prod", "sum")
    },
    "scatter_reduce(amin, include_self=False)": _scatter_reduce("amin", False),
    "scatter_reduce(prod, include_self=False)": _scatter_reduce("prod", False),
    "searchsorted": lambda x: torch.searchsorted(x.sort(-1).values, x),
    "sort": lambda x: x.sort(-1, descending=True),
    "topk": lambda x: x.topk(2),
    "unique": lambda x: torch.unique(x),
    "upsample(bicubic)": _upsample("bicubic"),
    "upsample(bilinear)": _upsample("bilinear"),
    "upsample(bicubic, antialias=True)": _smaller("bicubic"),
    "upsample(bilinear, antialias=True)": _smaller("bilinear"),
    "upsample(nearest)": _upsample("nearest"),
}

# operator of random numbers -> (a function of a sample, what holds for its results)
RANDOM: dict[str, tuple[Callable[[Tensor], Tensor], Callable[[Tensor], Tensor]]] = {
    "bernoulli": (lambda x: torch.bernoulli(x, 0.5), lambda y: (y == 0) | (y == 1)),
    "dropout (in training)": (
        lambda x: functional.dropout(x + 9, 0.5, True),
        lambda y: (y == 0) | (y > 9),
    ),
    "exponential": (lambda x: torch.empty_like(x).exponential_(), lambda y: y >= 0),
    "multinomial": (lambda x: torch.multinomial(x.abs() + 1, 5), lambda y: (y >= 0) & (y < 6)),
    "multinomial(replacement=True)": (
        lambda x: torch.multinomial(x.abs() + 1, 9, replacement=True),
        lambda y: (y >= 0) & (y < 6),
    ),
    "normal": (lambda x: torch.normal(x, 0.5), lambda y: y.abs() < 9),
    "rand_like": (torch.rand_like, lambda y: (y >= 0) & (y <= 1)),
    "randint_like": (lambda x: torch.randint_like(x, 9), lambda y: (y >= 0) & (y < 9)),
    "randn_like": (torch.randn_like, lambda y: y.abs() < 9),
    "randperm": (
        lambda x: torch.randperm(ROWS * COLUMNS, dtype=x.dtype),
        lambda y: y.sort().values == torch.arange(ROWS * COLUMNS),
    ),
    "uniform": (lambda x: torch.empty_like(x).uniform_(1, 2), lambda y: (y >= 1) & (y <= 2)),
}

# operator -> the dtypes for which there is no kernel; all of them: None
REFUSED: dict[str, tuple[str, ...] | None] = {
    "bincount": None,
    "gcd": None,
    "masked_select": None,
    "nonzero": None,
    "unique": None,
}


def there(operator: str, dtype: str) -> bool:
    """Whether PyTorch has the operator for the dtype on the CPU, where models are exported."""
    function = CASES[operator] if operator in CASES else RANDOM[operator][0]
    try:
        function(sample(dtype))
    except (RuntimeError, NotImplementedError):
        return False
    return True


def refused(operator: str, dtype: str) -> bool:
    dtypes = REFUSED.get(operator, ())
    return dtypes is None or dtype in dtypes


def runs(dtype: str) -> list[str]:
    """The operators that have kernels for the dtype."""
    every = [*CASES, *RANDOM]
    return [name for name in every if there(name, dtype) and not refused(name, dtype)]
