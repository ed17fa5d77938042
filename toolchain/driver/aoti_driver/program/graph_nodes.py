"""What passes ask about the nodes of a graph, and how they add nodes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import fx


def is_functional(node: fx.Node) -> bool:
    """Whether the node is known to write to none of its arguments."""
    if node.op != "call_function":
        return node.op in ("placeholder", "get_attr")
    if isinstance(node.target, torch._ops.OpOverload):
        return not node.target._schema.is_mutable
    return not isinstance(node.target, torch._ops.HigherOrderOperator)


def caller(graph: fx.Graph, like: fx.Node) -> Callable[..., fx.Node]:
    """Puts calls of operators into the graph, which come from where ``like`` comes from."""

    def call(operator: Any, *arguments: Any) -> fx.Node:
        node = graph.call_function(operator, arguments)
        node.meta = origin(like)
        values = [value_of(a) if isinstance(a, fx.Node) else a for a in arguments]
        node.meta["val"] = operator(*values)
        return node

    return call


def origin(node: fx.Node) -> dict[str, Any]:
    """The metadata that says which line of the model's source a node is for."""
    keys = ("nn_module_stack", "from_node", "stack_trace")
    return {key: value for key, value in node.meta.items() if key in keys}


def all_arguments(node: fx.Node) -> list[Any]:
    """In the schema's order, with the defaults."""
    schema = node.target._schema  # type: ignore[union-attr]
    given = dict(zip((a.name for a in schema.arguments), node.args, strict=False)) | node.kwargs
    return [given.get(a.name, a.default_value) for a in schema.arguments]


def value_of(node: fx.Node) -> Any:
    return node.meta.get("val")


def is_float32(node: Any) -> bool:
    return has_dtype(node, torch.float32)


def has_dtype(node: Any, dtype: torch.dtype) -> bool:
    value = value_of(node) if isinstance(node, fx.Node) else None
    return isinstance(value, torch.Tensor) and value.dtype == dtype
