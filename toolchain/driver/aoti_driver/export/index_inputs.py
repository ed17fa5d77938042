"""Finds the inputs that are used as indices, and the values that the program can take for them.

A token id beyond the vocabulary is an error in eager PyTorch. If an input reaches an operator
unchanged as an index, and the indexed size is static, then the manifest has the possible values,
and the runtime's check names the input and the wrong value.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.fx import Node

from aoti_driver.contract.dtypes import DTYPES

_INTEGERS = tuple(getattr(torch, dtype.name) for dtype in DTYPES.values() if dtype.integer)
_INDICES = (torch.int32, torch.int64)  # uint8 is a mask

# Operators whose result has exactly the elements of the first argument.
_SAME_ELEMENTS = frozenset(
    {
        "aten::alias",
        "aten::clone",
        "aten::contiguous",
        "aten::detach",
        "aten::flatten",
        "aten::lift_fresh_copy",
        "aten::permute",
        "aten::reshape",
        "aten::squeeze",
        "aten::t",
        "aten::transpose",
        "aten::unflatten",
        "aten::unsqueeze",
        "aten::view",
        "aten::_to_copy",
        "aten::to",
        "aten::type_as",
    }
)

# Operators with (self, dim, index, ...) that take 0..size-1.
_ALONG_DIM = frozenset(
    {
        "aten::gather",
        "aten::index_add",
        "aten::index_add_",
        "aten::index_copy",
        "aten::index_copy_",
        "aten::index_select",
        "aten::scatter",
        "aten::scatter_",
        "aten::scatter_add",
        "aten::scatter_add_",
        "aten::scatter_reduce",
        "aten::scatter_reduce_",
    }
)

# Operators with (self, [indices], ...) that also accept negative indices.
_BY_INDICES = frozenset({"aten::index", "aten::index_put", "aten::index_put_"})


@dataclasses.dataclass(frozen=True)
class Range:
    """A range of possible values, which includes both ends."""

    low: int
    high: int

    def __and__(self, other: Range) -> Range:
        return Range(max(self.low, other.low), min(self.high, other.high))


def possible_values(ep: ExportedProgram) -> Mapping[str, Range]:
    """The possible values of placeholders that are used as indices.

    Uses in branches and loops are ignored: whether they are executed depends on data.
    """
    ranges = {}
    for node in ep.graph.nodes:
        if node.op == "placeholder" and _is_integer(node):
            found = list(_uses(node))
            if found:
                first, *rest = found
                for other in rest:
                    first &= other
                if first.low <= first.high:
                    ranges[node.name] = first
    return ranges


def _uses(node: Node) -> Iterator[Range]:
    for user in node.users:
        if not isinstance(user.target, torch._ops.OpOverload):
            continue
        name = user.target._schema.name
        if name in _SAME_ELEMENTS:
            if user.args[0] is node and _is_integer(user) and _holds(user, node):
                yield from _uses(user)
        elif node.meta["val"].dtype in _INDICES:
            size = _indexed_size(user, name, node)
            if isinstance(size, int) and size > 0:
                yield Range(-size if name in _BY_INDICES else 0, size - 1)


def _indexed_size(user: Node, name: str, node: Node) -> Any:
    """The size of the dim that ``node`` indexes, if it is an index."""
    assert isinstance(user.target, torch._ops.OpOverload)
    names = (argument.name for argument in user.target._schema.arguments)
    arguments: dict[str, Any] = {**dict(zip(names, user.args)), **user.kwargs}
    if name in ("aten::embedding", "aten::embedding_bag", "aten::_embedding_bag"):
        return _shape(arguments["weight"])[0] if arguments["indices"] is node else None
    if name in _ALONG_DIM:
        shape = _shape(arguments["self"])
        if arguments["index"] is node and shape and _shape(node):
            return shape[arguments["dim"]]
    if name in _BY_INDICES:
        # A mask replaces as many dims as it has.
        indices = arguments["indices"]
        masked = any(i is not None and i.meta["val"].dtype not in _INDICES for i in indices)
        if node in indices and not masked:
            sizes = [s for i, s in zip(indices, _shape(arguments["self"])) if i is node]
            return min(sizes) if all(isinstance(s, int) for s in sizes) else None
    return None


def _holds(wide: Node, narrow: Node) -> bool:
    """Whether a cast preserves every value."""
    to, of = torch.iinfo(wide.meta["val"].dtype), torch.iinfo(narrow.meta["val"].dtype)
    return to.min <= of.min and to.max >= of.max


def _is_integer(node: Any) -> bool:
    value = node.meta.get("val")
    return isinstance(value, torch.Tensor) and value.dtype in _INTEGERS


def _shape(node: Any) -> list[Any]:
    return list(node.meta["val"].shape)
