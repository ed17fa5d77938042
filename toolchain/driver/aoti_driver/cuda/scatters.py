"""Sums, products, extremes and means of elements that several indices send to one place.

Inductor adds with the device's atomic additions, which exist for float32, float64, float16 and
int32. Here those of int64 are used too, bfloat16 is added in float32, and the largest element is
found by the atomic maximum of integers. A product compares each index with each place.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

from aoti_driver.cuda import operators
from aoti_driver.cuda.ordered_keys import lowest, numbers, ordered
from aoti_driver.cuda.wide import wide
from aoti_driver.torch_internals import patching

_aten: Any = torch.ops.aten
_LOWERING = "torch._inductor.lowering"
_STORE = "torch._inductor.codegen.triton:TritonKernel.store"


class _AtomicMax(str):
    """A mode of a store that Inductor takes for its "atomic_add"."""

    __slots__ = ()


_MAX = _AtomicMax("atomic_add")


@contextlib.contextmanager
def in_kernels() -> Iterator[None]:
    """Inside the block, Inductor has kernels for what DECOMPOSITIONS makes of scatters."""
    store = patching.original(_STORE)

    def store_largest(kernel: Any, name: str, index: Any, value: Any, mode: Any = None) -> None:
        before = len(kernel.stores._lines)
        store(kernel, name, index, value, mode)
        if isinstance(mode, _AtomicMax):
            for line in kernel.stores._lines[before:]:
                line.line = line.line.replace("tl.atomic_add(", "tl.atomic_max(")

    scatter_reduce = _aten.scatter_reduce.two
    with (
        patching.replaced(
            {
                _STORE: store_largest,
                f"{_LOWERING}:needs_fallback_due_to_atomic_add_limitations": _not_added,
                f"{_LOWERING}:use_scatter_fallback": _not_reduced,
            }
        ),
        patching.entries_kept(f"{_LOWERING}:lowerings", [scatter_reduce]) as lowerings,
    ):
        lowerings[scatter_reduce] = _lowered(lowerings[scatter_reduce])
        yield


def _not_added(dtype: torch.dtype) -> bool:
    return dtype in (torch.bool, torch.bfloat16)


def _not_reduced(
    _: Any, reduction: str | None, self_dtype: torch.dtype, *__: Any, **___: Any
) -> bool:
    return reduction is not None and (reduction not in ("add", "sum") or _not_added(self_dtype))


def _lowered(lower: Callable[..., Any]) -> Callable[..., Any]:
    from torch._inductor.virtualized import V

    def lowered(x: Any, dim: int, index: Any, source: Any, reduce: str, **options: Any) -> Any:
        if reduce != "amax" or x.get_dtype() not in (torch.int32, torch.int64):
            return lower(x, dim, index, source, reduce, **options)
        result = lower(x, dim, index, source, "sum")
        buffer: Any = V.graph.operations[-1]
        largest = dataclasses.replace(buffer.data, scatter_mode=_MAX)
        patching.replace_on(buffer, "torch._inductor.ir:ComputedBuffer.data", largest)
        return result

    return lowered


def _addable(x: Tensor) -> Tensor:
    return x.float() if x.dtype == torch.bfloat16 else x.to(torch.int32)


def _scatter_add(x: Tensor, dim: int, index: Tensor, source: Tensor) -> Any:
    if not _not_added(x.dtype):
        return NotImplemented
    return _aten.scatter_add(_addable(x), dim, index, _addable(source)).to(x.dtype)


def _index_add(x: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: Any = 1) -> Any:
    if not _not_added(x.dtype):
        return NotImplemented
    return _aten.index_add(_addable(x), dim, index, _addable(source), alpha=alpha).to(x.dtype)


def _index_put(name: str) -> Callable[..., Any]:
    def put(x: Tensor, indices: Any, values: Tensor, accumulate: bool = False, *rest: Any) -> Any:
        if not accumulate or not _not_added(x.dtype):
            return NotImplemented
        return operators.find(name)(_addable(x), indices, _addable(values), True, *rest).to(x.dtype)

    return put


def _index_reduce(
    x: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    shape = [1] * source.dim()
    if shape:
        shape[dim] = -1
    places = index.view(shape).expand(source.shape)
    result: Tensor = _aten.scatter_reduce(x, dim, places, source, reduce, include_self=include_self)
    return result


def _scatter(x: Tensor, dim: int, index: Tensor, source: Any, *, reduce: str) -> Tensor:
    if not isinstance(source, Tensor):
        source = torch.full_like(index, source, dtype=x.dtype)
    kind = {"add": "sum", "multiply": "prod"}[reduce]
    result: Tensor = _aten.scatter_reduce(x, dim, index, source, kind)
    return result


def _scatter_reduce(
    x: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, *, include_self: bool = True
) -> Any:
    if x.dim() == 0:
        one = (t.reshape(1) for t in (x, index, source))
        first, places, values = one
        return _aten.scatter_reduce(
            first, 0, places, values, reduce, include_self=include_self
        ).reshape(())
    if reduce == "sum":
        if not _not_added(x.dtype):
            return NotImplemented
        options = {"include_self": include_self}
        total = _aten.scatter_reduce(_addable(x), dim, index, _addable(source), reduce, **options)
        return total.to(x.dtype)
    if reduce == "mean":
        return _mean(x, dim, index, source, include_self)
    if reduce == "prod":
        return _product(x, dim, index, source, include_self)
    if reduce == "amax" and include_self and x.dtype in (torch.int32, torch.int64):
        return NotImplemented
    # The smallest number is the largest one of the other sign, where NaN is the largest too.
    if reduce == "amin":
        x, source = _opposite(x), _opposite(source)
    keys = ordered(x)
    if not include_self:
        keys = _aten.scatter(keys, dim, index, lowest(keys))
    largest = numbers(_aten.scatter_reduce(keys, dim, index, ordered(source), "amax"), x.dtype)
    return _opposite(largest) if reduce == "amin" else largest


def _opposite(x: Tensor) -> Tensor:
    """Numbers in the opposite order."""
    return -x if x.is_floating_point() else ~x


def _mean(x: Tensor, dim: int, index: Tensor, source: Tensor, include_self: bool) -> Tensor:
    own = wide(x)
    options = {"include_self": include_self}
    total = _aten.scatter_reduce(own, dim, index, source.to(own.dtype), "sum", **options)
    counts = torch.full_like(x, int(include_self), dtype=torch.int32)
    ones = torch.ones_like(index, dtype=torch.int32)
    counts = _aten.scatter_add(counts, dim, index, ones).clamp_min(1)
    rounding = None if x.dtype.is_floating_point else "floor"
    return torch.div(total, counts, rounding_mode=rounding).to(x.dtype)


def _product(x: Tensor, dim: int, index: Tensor, source: Tensor, include_self: bool) -> Tensor:
    dim = dim % x.dim()
    for d, size in enumerate(index.shape):
        source = source.narrow(d, 0, size)
    values = wide(source)
    shape = [1] * (x.dim() + 1)
    shape[dim] = x.shape[dim]
    places = torch.arange(x.shape[dim], device=x.device).view(shape)
    here = index.unsqueeze(dim) == places
    one = torch.ones((), dtype=values.dtype, device=x.device)
    product = torch.where(here, values.unsqueeze(dim), one).prod(dim + 1, dtype=values.dtype)
    behind: list[Any] = []
    for d in reversed(range(x.dim())):
        behind += [0, 0 if d == dim else x.shape[d] - index.shape[d]]
    if any(not isinstance(size, int) or size != 0 for size in behind):
        product = _aten.constant_pad_nd(product, behind, 1)
    # This kernel reports indices that are out of range, too.
    reached = _aten.scatter(torch.zeros_like(x, dtype=torch.bool), dim, index, True)
    own = product * x.to(values.dtype) if include_self else product
    return torch.where(reached, own.to(x.dtype), x)


DECOMPOSITIONS: dict[str, Callable[..., Any]] = {
    "aten.scatter_add.default": _scatter_add,
    "aten.index_add.default": _index_add,
    "aten.index_put.default": _index_put("aten.index_put.default"),
    "aten._unsafe_index_put.default": _index_put("aten._unsafe_index_put.default"),
    "aten.index_reduce.default": _index_reduce,
    "aten.scatter.reduce": _scatter,
    "aten.scatter.value_reduce": _scatter,
    "aten.scatter_reduce.two": _scatter_reduce,
}
