"""Operators of torch and higher-order ones, each alone: what models call beside layers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from tests.survey.registry import BATCH, Architecture, Function, Sample, floats, indices

_REDUCTIONS = ("sum", "prod", "mean", "amax", "amin")


def _call(function: Callable[..., Any], *args: Any, batch: bool = True) -> Sample:
    return Sample(Function(function).eval(), args, batch=batch)


def _fixed(function: Callable[..., Any], *args: Any) -> Sample:
    return _call(function, *args, batch=False)


def _x(*shape: int) -> torch.Tensor:
    return floats(BATCH, *(shape or (5, 8)))


# -- results whose sizes depend on the data --


def _item(x: torch.Tensor, n: torch.Tensor) -> torch.Tensor:
    size = n.item()
    torch._check(size >= 2)  # type: ignore[no-untyped-call]
    torch._check(size <= 8)  # type: ignore[no-untyped-call]
    return torch.ones(size) * x.sum()  # type: ignore[arg-type]


def _masked(x: torch.Tensor) -> torch.Tensor:
    return torch.masked_select(x, x > 0) * 2


def _sum_of_selected(x: torch.Tensor) -> torch.Tensor:
    return x[x > 0].sum() + x[(x > 0).nonzero()[:, 0]].sum()


def _index_put(x: torch.Tensor, i: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    z = x.clone()
    z[:, i] = y
    return z


# -- linear algebra --


def _reflectors(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, ...]:
    kept, tau = torch.geqrf(x)
    return kept, torch.linalg.householder_product(kept, tau), torch.ormqr(kept, tau, y)


def _from_eigenvectors(x: torch.Tensor) -> torch.Tensor:
    """The matrix itself, whatever the order and the length of the eigenvectors are."""
    values, vectors = torch.linalg.eig(x)
    return torch.view_as_real(vectors * values.unsqueeze(-2) @ torch.linalg.inv(vectors))


def _ldl(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    solution: torch.Tensor = torch.linalg.ldl_solve(*torch.linalg.ldl_factor(x + x.mT), y)
    return solution


def _complex_views(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """With a copy into a part of the argument."""
    x.diagonal(1, -2, -1).copy_(y)
    return torch.view_as_real(x.as_strided((2, 3), (1, 2)) * 2), torch.view_as_real(x)


def _complex_parts(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Assignments to parts of a copy, and the operators that are named after them."""
    z = x.clone()
    z[..., 2] = y
    z[..., ::2, :] *= 2
    scattered = x.diagonal_scatter(y, 0, -2, -1), x.as_strided_scatter(y[0], (5,), (6,))
    return tuple(map(torch.view_as_real, (z, *scattered)))


# -- random numbers --

_RANDOM: dict[str, Callable[[], Sample]] = {
    "rand": lambda: _call(lambda x: x + torch.rand(BATCH, 8), _x(8), batch=False),
    "rand_like": lambda: _call(torch.rand_like, _x()),
    "randn": lambda: _fixed(lambda x: x + torch.randn(BATCH, 8), _x(8)),
    "randn_like": lambda: _call(torch.randn_like, _x()),
    "randint": lambda: _fixed(lambda x: x + torch.randint(0, 9, (BATCH, 8)), _x(8)),
    "randperm": lambda: _call(lambda x: x[:, torch.randperm(5)], _x()),
    "bernoulli": lambda: _call(lambda x: torch.bernoulli(x.sigmoid()), _x()),
    "bernoulli_number": lambda: _call(lambda x: x.bernoulli(0.3), _x()),
    "normal": lambda: _call(lambda x: torch.normal(x, 0.1), _x()),
    "uniform": lambda: _call(lambda x: torch.empty_like(x).uniform_(-1, 1), _x()),
    "exponential": lambda: _call(lambda x: torch.empty_like(x).exponential_(), _x()),
    "multinomial": lambda: _call(lambda x: torch.multinomial(x.softmax(-1), 2), _x(8)),
    "dropout_in_training": lambda: _call(lambda x: nn.functional.dropout(x, 0.3, True), _x()),
}

_OPERATORS: dict[str, Callable[[], Sample]] = {
    "nonzero": lambda: _call(lambda x: (x > 0).nonzero(), _x()),
    "nonzero_static": lambda: _call(lambda x: torch.nonzero_static(x > 0, size=9), _x()),
    "masked_select": lambda: _call(_masked, _x()),
    "boolean_index": lambda: _call(_sum_of_selected, _x(8)),
    "item": lambda: _fixed(_item, _x(), torch.tensor(4)),
    "repeat_interleave": lambda: _fixed(
        lambda x, n: x.repeat_interleave(n, 0), _x(), torch.tensor([2, 0, 3])
    ),
    "unique": lambda: _fixed(torch.unique, indices(7, 20)),
    "unique_all": lambda: _fixed(
        lambda x: torch.unique(x, return_inverse=True, return_counts=True), indices(7, 20)
    ),
    "unique_rows": lambda: _fixed(lambda x: torch.unique(x, dim=0), indices(2, 9, 3)),
    "unique_consecutive": lambda: _fixed(torch.unique_consecutive, indices(3, 20)),
    "bincount": lambda: _fixed(lambda x: torch.bincount(x, minlength=9), indices(7, 20)),
    "histc": lambda: _fixed(lambda x: torch.histc(x, 10, -2, 2), floats(50)),
    "topk": lambda: _call(lambda x: torch.topk(x, 3), _x()),
    "sort": lambda: _call(lambda x: torch.sort(x, descending=True), _x()),
    "sort_stable": lambda: _call(lambda x: torch.sort(x, dim=1, stable=True), _x()),
    "argsort": lambda: _call(lambda x: x.argsort(-1), _x()),
    "median": lambda: _call(lambda x: (x.median(), x.median(-1)), _x()),
    "quantile": lambda: _call(lambda x: x.quantile(0.3, dim=-1), _x()),
    "mode": lambda: _call(lambda x: torch.mode(x), indices(4, BATCH, 9)),
    "kthvalue": lambda: _call(lambda x: torch.kthvalue(x, 2), _x()),
    "searchsorted": lambda: _call(
        lambda x: torch.searchsorted(torch.tensor([-1.0, 0.0, 1.0]), x), _x()
    ),
    "bucketize": lambda: _call(lambda x: torch.bucketize(x, torch.tensor([-1.0, 0, 1])), _x()),
    "isin": lambda: _call(lambda x: torch.isin(x, torch.tensor([1, 3])), indices(5, BATCH, 4)),
    "argmax": lambda: _call(lambda x: (x.argmax(), x.argmin(-1), x.max(1)), _x()),
    "cumsum": lambda: _call(lambda x: (x.cumsum(-1), x.cumsum(1)), _x()),
    "cumsum_integers": lambda: _call(lambda x: (x > 0).cumsum(0), _x()),
    "cumsum_bfloat16": lambda: _call(lambda x: x.bfloat16().cumsum(-1), _x()),
    "cumprod": lambda: _call(lambda x: x.cumprod(1), _x()),
    "cummax": lambda: _call(lambda x: (x.cummax(1), x.cummin(-1)), _x()),
    "logcumsumexp": lambda: _call(lambda x: x.logcumsumexp(-1), _x()),
    "gather": lambda: _call(lambda x, i: x.gather(1, i), _x(), indices(5, BATCH, 2, 8)),
    "take_along_dim": lambda: _call(
        lambda x, i: torch.take_along_dim(x, i, 1), _x(), indices(5, BATCH, 2, 8)
    ),
    "take": lambda: _fixed(lambda x, i: x.take(i), _x(), indices(40, 9)),
    "index_select": lambda: _call(lambda x, i: x.index_select(1, i), _x(), indices(5, 4)),
    "index_add": lambda: _call(lambda x, i, y: x.index_add(1, i, y), _x(), indices(5, 4), _x(4, 8)),
    "index_copy": lambda: _call(
        lambda x, i, y: x.index_copy(1, i, y), _x(), torch.tensor([4, 0]), _x(2, 8)
    ),
    "index_fill": lambda: _call(lambda x, i: x.index_fill(1, i, 7.0), _x(), indices(5, 2)),
    "index_put": lambda: _call(_index_put, _x(), torch.tensor([4, 0]), _x(2, 8)),
    "index_put_accumulate": lambda: _fixed(
        lambda x, i, j, y: x.index_put((i, j), y, accumulate=True),
        _x(5),
        indices(3, 9),
        indices(5, 9),
        floats(9),
    ),
    "index_put_mask": lambda: _call(
        lambda x: x.masked_fill(x > 0, 1).index_put((x < -1,), x.new_zeros(())), _x()
    ),
    "index_put_bfloat16": lambda: _fixed(
        lambda x, i, y: x.bfloat16().index_put((i,), y.bfloat16(), accumulate=True),
        floats(5, 8),
        indices(5, 9),
        floats(9, 8),
    ),
    "kv_cache": lambda: _fixed(
        lambda cache, i, y: cache.index_copy_(2, i, y),
        floats(1, 2, 16, 8),
        torch.tensor([3, 4]),
        floats(1, 2, 2, 8),
    ),
    "put": lambda: _fixed(
        lambda x, i, y: x.put(i, y, accumulate=True), floats(5, 8), indices(40, 4), floats(4)
    ),
    "scatter": lambda: _call(
        lambda x, i, y: x.scatter(1, i, y), _x(8), torch.tensor([[0, 3], [1, 2], [7, 4]]), _x(2)
    ),
    "scatter_value": lambda: _call(
        lambda x, i: torch.zeros_like(x).scatter(1, i, 1.0), _x(8), indices(8, BATCH, 1)
    ),
    "scatter_add": lambda: _call(
        lambda x, i, y: x.scatter_add(1, i, y), _x(8), indices(8, BATCH, 5), _x(5)
    ),
    "scatter_add_integers": lambda: _call(
        lambda x, i, y: x.scatter_add(1, i, y),
        indices(9, BATCH, 8),
        indices(8, BATCH, 5),
        indices(9, BATCH, 5),
    ),
    "scatter_reduce_multiply": lambda: _call(
        lambda x, i, y: x.scatter(1, i, y, reduce="multiply"), _x(8), indices(8, BATCH, 5), _x(5)
    ),
    "masked_scatter": lambda: _fixed(
        lambda x, y: x.masked_scatter(x > 0, y), floats(5, 8), floats(40)
    ),
    "select_scatter": lambda: _call(lambda x, y: x.select_scatter(y, 1, 2), _x(), _x(8)),
    "slice_scatter": lambda: _call(lambda x, y: x.slice_scatter(y, 1, 1, 3), _x(), _x(2, 8)),
    "diagonal_scatter": lambda: _fixed(lambda x, y: x.diagonal_scatter(y), floats(5, 5), floats(5)),
    "triangular": lambda: _call(lambda x: (x.tril(), x.triu(1)), _x()),
    "tril_indices": lambda: _fixed(lambda x: x[tuple(torch.tril_indices(5, 5))], floats(5, 5)),
    "roll_flip": lambda: _call(lambda x: x.roll(2, 1).flip(-1).rot90(1, (1, 2)), _x()),
    "stack_split": lambda: _call(lambda x: torch.stack(x.split([2, 3], 1)[1].unbind(1)), _x()),
    "chunk_cat": lambda: _call(lambda x: torch.cat([c * 2 for c in x.chunk(3, 1)], -2), _x()),
    "unfold": lambda: _call(lambda x: x.unfold(1, 3, 1).contiguous(), _x()),
    "as_strided": lambda: _fixed(lambda x: x.as_strided((3, 4), (1, 2), 3).clone(), floats(40)),
    "tile_repeat": lambda: _call(lambda x: x.repeat(1, 2, 1).tile(1, 1, 2), _x()),
    "meshgrid": lambda: _fixed(
        lambda x, y: torch.meshgrid(x, y, indexing="ij"), floats(4), floats(5)
    ),
    "cartesian": lambda: _fixed(torch.cartesian_prod, floats(4), floats(5)),
    "combinations": lambda: _fixed(torch.combinations, floats(4)),
    "einsum": lambda: _call(lambda x, y: torch.einsum("bij,bkj->bik", x, y), _x(), _x(4, 8)),
    "baddbmm": lambda: _call(
        lambda c, a, b: torch.baddbmm(c, a, b, beta=0.5, alpha=2), _x(5, 4), _x(5, 8), _x(8, 4)
    ),
    "addmm_scaled": lambda: _call(
        lambda c, a, b: torch.addmm(c, a, b, beta=0.5, alpha=2), _x(4), _x(8), floats(8, 4)
    ),
    "matmul_integers": lambda: _fixed(torch.matmul, indices(9, 5, 6), indices(9, 6, 7)),
    "matmul_complex": lambda: _fixed(
        torch.matmul,
        torch.randn(5, 6, dtype=torch.complex64),
        torch.randn(6, 7, dtype=torch.complex64),
    ),
    "matmul_vectors": lambda: _fixed(
        lambda m, v: (m @ v, v @ v, torch.outer(v, v)), floats(5, 6), floats(6)
    ),
    "tensordot": lambda: _call(lambda x, y: torch.tensordot(x, y, 1), _x(), floats(8, 3)),
    "kron": lambda: _fixed(torch.kron, floats(3, 4), floats(2, 5)),
    "cdist": lambda: _call(torch.cdist, _x(), _x(4, 8)),
    "cdist_1": lambda: _call(lambda x, y: torch.cdist(x, y, p=1.0), _x(), _x(4, 8)),
    "pdist": lambda: _fixed(torch.pdist, floats(5, 8)),
    "trapezoid": lambda: _call(torch.trapezoid, _x()),
    "norms": lambda: _call(
        lambda x: (x.norm(), x.norm(1, dim=-1), x.norm(float("inf"), dim=1), x.var(1), x.std()),
        _x(),
    ),
    "histogram_of_bool": lambda: _call(lambda x: ((x > 0).sum(), (x > 0).any(1), x.all(-1)), _x()),
    "special_functions": lambda: _call(
        lambda x: [
            f(x.abs() + 0.5)
            for f in (
                torch.lgamma,
                torch.digamma,
                torch.erf,
                torch.erfinv,
                torch.i0,
                torch.special.i1,
                torch.special.i0e,
                torch.special.ndtri,
                torch.special.log_ndtr,
                torch.special.erfcx,
                torch.special.entr,
                torch.special.bessel_j0,
                torch.special.bessel_j1,
            )
        ],
        _x(),
    ),
    "special_functions_of_two": lambda: _call(
        lambda x, y: [
            f(x.abs() + 0.5, y.abs() + 0.5)
            for f in (
                torch.special.zeta,
                torch.special.xlog1py,
                torch.igamma,
                torch.igammac,
                torch.atan2,
                torch.hypot,
                torch.nextafter,
                torch.logaddexp,
                torch.fmod,
                torch.remainder,
                torch.copysign,
                torch.heaviside,
                torch.pow,
            )
        ],
        _x(),
        _x(),
    ),
    "polygamma": lambda: _call(lambda x: torch.polygamma(2, x.abs() + 0.5), _x()),
    "integer_arithmetic": lambda: _call(
        lambda x, y: [x // (y + 1), x % (y + 1), x << 2, x ^ y, torch.gcd(x, y), ~x],
        indices(99, BATCH, 8),
        indices(9, BATCH, 8),
    ),
    "frexp": lambda: _call(lambda x: (torch.frexp(x), torch.ldexp(x, torch.tensor(2))), _x()),
    "fft": lambda: _call(lambda x: torch.fft.fft(x).abs(), _x()),
    "rfft_irfft": lambda: _call(lambda x: torch.fft.irfft(torch.fft.rfft(x) * 2, n=8), _x()),
    "fft2": lambda: _call(lambda x: torch.fft.ifft2(torch.fft.fft2(x)).real, _x()),
    "fftshift": lambda: _call(lambda x: torch.fft.fftshift(x), _x()),
    "stft": lambda: _call(
        lambda x: torch.view_as_real(
            torch.stft(x, 16, window=torch.hann_window(16), return_complex=True)
        ),
        _x(64),
    ),
    "istft": lambda: _fixed(
        lambda x: torch.istft(
            torch.stft(x, 16, window=torch.hann_window(16), return_complex=True),
            16,
            window=torch.hann_window(16),
        ),
        _x(64),
    ),
    "complex_arithmetic": lambda: _call(
        lambda x: torch.view_as_real(torch.polar(x, x) * torch.complex(x, x)), _x()
    ),
    "cholesky": lambda: _call(lambda x: torch.linalg.cholesky(x @ x.mT + torch.eye(5)), _x(5, 5)),
    "cholesky_solve": lambda: _fixed(
        lambda x, y: torch.cholesky_solve(y, torch.linalg.cholesky(x @ x.mT + torch.eye(5))),
        floats(5, 5),
        floats(5, 2),
    ),
    "inverse": lambda: _call(lambda x: torch.linalg.inv(x + 9 * torch.eye(5)), _x(5, 5)),
    "solve": lambda: _call(
        lambda x, y: torch.linalg.solve(x + 9 * torch.eye(5), y), _x(5, 5), _x(5, 2)
    ),
    "triangular_solve": lambda: _fixed(
        lambda x, y: torch.linalg.solve_triangular(x.tril() + 9 * torch.eye(5), y, upper=False),
        floats(5, 5),
        floats(5, 2),
    ),
    "determinant": lambda: _call(lambda x: (torch.linalg.det(x), torch.logdet(x @ x.mT)), _x(5, 5)),
    "qr": lambda: _call(torch.linalg.qr, _x(5, 5)),
    "householder": lambda: _call(_reflectors, _x(5, 4), _x(5, 2)),
    "lu": lambda: _call(torch.linalg.lu_factor, _x(5, 5)),
    "ldl": lambda: _call(_ldl, _x(5, 5), _x(5, 2)),
    "svd": lambda: _call(torch.linalg.svdvals, _x(5, 4)),
    "eig": lambda: _call(_from_eigenvectors, _x(5, 5)),
    "eigvals": lambda: _call(lambda x: torch.linalg.eigvals(x).abs().sort().values, _x(5, 5)),
    "complex_views": lambda: _call(
        _complex_views, floats(BATCH, 5, 5, dtype=torch.complex64), _x(4)
    ),
    "complex_parts": lambda: _call(
        _complex_parts,
        floats(BATCH, 5, 5, dtype=torch.complex64),
        floats(BATCH, 5).to(torch.complex64),
    ),
    "complex128_parts": lambda: _call(
        lambda x, y: _complex_parts(torch.view_as_complex(x), torch.view_as_complex(y)),
        floats(BATCH, 5, 5, 2, dtype=torch.float64),
        floats(BATCH, 5, 2, dtype=torch.float64),
    ),
    "eigh": lambda: _call(lambda x: torch.linalg.eigvalsh(x @ x.mT), _x(5, 5)),
    "least_squares": lambda: _fixed(
        lambda x, y: torch.linalg.lstsq(x, y).solution, floats(6, 4), floats(6, 2)
    ),
    "matrix_exp": lambda: _call(torch.linalg.matrix_exp, _x(4, 4)),
    "matrix_power": lambda: _call(lambda x: torch.linalg.matrix_power(x, 3), _x(4, 4)),
    "bfloat16_arithmetic": lambda: _call(
        lambda x: (x.bfloat16().exp() * 2).softmax(-1).sum(1), _x()
    ),
    "float16_arithmetic": lambda: _call(lambda x: (x.half().exp() * 2).softmax(-1).sum(1), _x()),
    "float8": lambda: _call(lambda x: x.to(torch.float8_e4m3fn).float() * 2, _x()),
    "arange": lambda: _call(lambda x: x + torch.arange(x.shape[-1]), _x()),
    "linspace": lambda: _call(lambda x: x + torch.linspace(0, 1, 8), _x()),
    "new_full": lambda: _call(lambda x: (x.new_full((4,), 2), torch.eye(5), x.clone()), _x()),
    "assert": lambda: _call(lambda x: (torch._assert_async((x * 0 == 0).all()), x + 1)[1], _x()),
    "segment_reduce": lambda: _fixed(
        lambda x, n: torch.segment_reduce(x, "mean", lengths=n, unsafe=True),
        floats(9, 5),
        torch.tensor([4, 0, 5]),
    ),
    "segment_reduce_offsets": lambda: _fixed(
        lambda x, n: torch.segment_reduce(x, "max", offsets=n, initial=0),
        floats(9, 5),
        torch.tensor([0, 4, 9]),
    ),
    "grouped_mm": lambda: _fixed(
        torch._grouped_mm,
        floats(8, 16).bfloat16(),
        floats(3, 16, 24).bfloat16(),
        torch.tensor([2, 2, 8], dtype=torch.int32),
    ),
    "batched_nms": lambda: _fixed(
        lambda b, s: b[s.argsort(descending=True)][:4].clamp(min=0), torch.rand(9, 4), torch.rand(9)
    ),
}


def _scatter_reduce(reduction: str, include_self: bool) -> Callable[[], Sample]:
    return lambda: _call(
        lambda x, i, y: x.scatter_reduce(1, i, y, reduction, include_self=include_self),
        _x(8),
        indices(8, BATCH, 5),
        _x(5),
    )


def _index_reduce(reduction: str) -> Callable[[], Sample]:
    return lambda: _fixed(
        lambda x, i, y: x.index_reduce(0, i, y, reduction), _x(8), indices(3, 5), floats(5, 8)
    )


for _reduction in _REDUCTIONS:
    _OPERATORS[f"scatter_reduce_{_reduction}"] = _scatter_reduce(_reduction, True)
    _OPERATORS[f"scatter_reduce_{_reduction}_without_self"] = _scatter_reduce(_reduction, False)
    if _reduction != "sum":
        _OPERATORS[f"index_reduce_{_reduction}"] = _index_reduce(_reduction)

ARCHITECTURES = [
    *(Architecture(name, "torch", build) for name, build in _OPERATORS.items()),
    *(Architecture(name, "torch", build, random=True) for name, build in _RANDOM.items()),
    *(
        Architecture(f"{name}_fallback", "torch", build, {"fallback_random": "true"}, random=True)
        for name, build in _RANDOM.items()
    ),
]
