"""sort, topk and kthvalue of rows that are too long for one block of threads.

A row is sorted in parts. Two sorted parts are merged by counting, for each element of one, the
elements of the other before it. topk keeps the best of each part.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import sympy
import torch
from torch import Tensor

from aoti_driver.cuda import sort_limits
from aoti_driver.cuda.ordered_keys import highest, ordered

_aten: Any = torch.ops.aten


def _longest(size: Any) -> int | None:
    """The upper bound of a row's length; None if there is none."""
    if isinstance(size, int):
        return size
    bound = size.node.shape_env.bound_sympy(size.node.expr).upper
    return int(bound) if isinstance(bound, sympy.Integer) else None


def _in_parts(x: Tensor, dim: int) -> bool:
    """Whether the row is longer than what one block sorts, and its longest length is known."""
    if x.dim() == 0:
        return False
    bound = _longest(x.shape[dim])
    return bound is not None and bound > sort_limits.LONGEST_ROW


def _padded(x: Tensor, length: int, value: int) -> Tensor:
    result: Tensor = _aten.constant_pad_nd(x, [0, length - x.shape[-1]], value)
    return result


def _sorted_parts(keys: Tensor, places: Tensor, bound: int) -> tuple[Tensor, Tensor]:
    """[..., n] -> keys and places in sorted parts: [..., parts, PART]."""
    part = sort_limits.PART
    parts = -(-bound // part)
    shape = (*keys.shape[:-1], parts, part)
    keys = _padded(keys, parts * part, highest(keys)).view(shape)
    places = _padded(places, parts * part, 0).view(shape)
    keys, order = torch.sort(keys, dim=-1, stable=True)
    return keys, places.gather(-1, order)


def _places(keys: Tensor) -> Tensor:
    places = torch.arange(keys.shape[-1], device=keys.device, dtype=torch.int32)
    return places.expand(keys.shape)


def _order(keys: Tensor) -> Tensor:
    """The places of the sorted elements of each row; equal ones stay in their order."""
    length = keys.shape[-1]
    bound = _longest(length)
    assert bound is not None
    keys, places = _sorted_parts(keys, _places(keys), bound)
    while keys.shape[-2] > 1:
        if keys.shape[-2] % 2:
            keys = _aten.constant_pad_nd(keys, [0, 0, 0, 1], highest(keys))
            places = _aten.constant_pad_nd(places, [0, 0, 0, 1], 0)
        left, right = (keys[..., i::2, :].contiguous() for i in range(2))
        own = torch.arange(left.shape[-1], device=keys.device)
        to = torch.cat(
            [
                own + torch.searchsorted(right, left),
                own + torch.searchsorted(left, right, right=True),
            ],
            -1,
        )
        shape = (*left.shape[:-1], 2 * left.shape[-1])
        keys = keys.reshape(shape)
        places = places.reshape(shape)
        keys = _aten.scatter(keys, -1, to, keys)
        places = _aten.scatter(places, -1, to, places)
    return places.squeeze(-2)[..., :length].to(torch.int64)


def _best(keys: Tensor, k: int) -> Tensor:
    """The places of the k smallest elements of each row, k at most half of a part."""
    bound = _longest(keys.shape[-1])
    assert bound is not None
    places = _places(keys)
    while True:
        keys, places = _sorted_parts(keys, places, bound)
        keys, places = keys[..., :k].flatten(-2), places[..., :k].flatten(-2)
        bound = keys.shape[-1]
        if bound == k:
            return places.to(torch.int64)


def _keys(x: Tensor, dim: int, descending: bool) -> Tensor:
    keys = ordered(x.movedim(dim, -1))
    return ~keys if descending else keys


def _taken(x: Tensor, dim: int, order: Tensor) -> tuple[Tensor, Tensor]:
    values = x.movedim(dim, -1).gather(-1, order)
    return values.movedim(-1, dim).contiguous(), order.movedim(-1, dim).contiguous()


def _sort_stable(x: Tensor, *, stable: Any = None, dim: int = -1, descending: bool = False) -> Any:
    return _sort(x, dim, descending)


def _sort(x: Tensor, dim: int = -1, descending: bool = False) -> Any:
    if not _in_parts(x, dim):
        return NotImplemented
    return _taken(x, dim, _order(_keys(x, dim, descending)))


def _topk(x: Tensor, k: Any, dim: int = -1, largest: bool = True, sorted: bool = True) -> Any:
    if not _in_parts(x, dim):
        return NotImplemented
    keys = _keys(x, dim, largest)
    if isinstance(k, int) and 0 < k <= sort_limits.PART // 2:
        return _taken(x, dim, _best(keys, k))
    return _taken(x, dim, _order(keys)[..., :k])


def _kthvalue(x: Tensor, k: Any, dim: int = -1, keepdim: bool = False) -> Any:
    if not _in_parts(x, dim):
        return NotImplemented
    order = _order(_keys(x, dim, False))[..., k - 1 : k]
    values, places = _taken(x, dim, order)
    return (values, places) if keepdim else (values.squeeze(dim), places.squeeze(dim))


DECOMPOSITIONS: dict[str, Callable[..., Any]] = {
    "aten.sort.default": _sort,
    "aten.sort.stable": _sort_stable,
    "aten.topk.default": _topk,
    "aten.kthvalue.default": _kthvalue,
}
