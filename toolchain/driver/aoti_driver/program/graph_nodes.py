"""What passes ask about the nodes of a graph, and how they add nodes."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import fx
from torch._dispatch.python import enable_python_dispatcher
from torch.fx.experimental.symbolic_shapes import statically_known_true

CASTS = (torch.ops.aten._to_copy.default, torch.ops.aten.to.dtype)


def is_functional(node: fx.Node) -> bool:
    """Whether the node is known to write to none of its arguments."""
    if node.op != "call_function":
        return node.op in ("placeholder", "get_attr")
    if isinstance(node.target, torch._ops.OpOverload):
        return not node.target._schema.is_mutable
    return not isinstance(node.target, torch._ops.HigherOrderOperator)


def write_anew(module: fx.GraphModule, changed: bool) -> None:
    """Writes the module's code, if its graph was changed: of a large one, that takes a while."""
    if changed:
        module.graph.lint()
        module.recompile()


def caller(graph: fx.Graph, like: fx.Node) -> Callable[..., fx.Node]:
    """Puts calls of operators into the graph, which come from where ``like`` comes from."""

    def call(operator: Any, *arguments: Any, **options: Any) -> fx.Node:
        node = graph.call_function(operator, arguments, options)
        node.meta = origin(like)
        node.meta["val"] = value_of_call(operator, arguments, options)
        return node

    return call


def value_of_call(
    operator: Any,
    arguments: Sequence[Any],
    options: Mapping[str, Any] | None = None,
    value: Callable[[fx.Node], Any] | None = None,
) -> Any:
    """What a call with nodes as arguments gives, as fake tensors. value: that of a node, if it has
    another than `value_of` says.
    """
    given, named = fx.map_arg((tuple(arguments), dict(options or {})), value or value_of)
    # Without it, operators that are made of others could make constants of sizes.
    with enable_python_dispatcher():
        return operator(*given, **named)


def origin(node: fx.Node) -> dict[str, Any]:
    """The metadata that says which line of the model's source a node is for."""
    keys = ("nn_module_stack", "from_node", "stack_trace")
    return {key: value for key, value in node.meta.items() if key in keys}


def all_arguments(node: fx.Node) -> list[Any]:
    """In the schema's order, with the defaults."""
    schema = node.target._schema  # type: ignore[union-attr]
    given = dict(zip((a.name for a in schema.arguments), node.args, strict=False)) | node.kwargs
    return [given.get(a.name, a.default_value) for a in schema.arguments]


def arguments_of(node: fx.Node) -> Iterator[tuple[str, object, Any]]:
    """Name, value, and what the operator's schema says of the memory, of each argument given."""
    assert isinstance(node.target, torch._ops.OpOverload)
    for i, argument in enumerate(node.target._schema.arguments):
        if not argument.kwarg_only and i < len(node.args):
            yield argument.name, node.args[i], argument.alias_info
        elif argument.name in node.kwargs:
            yield argument.name, node.kwargs[argument.name], argument.alias_info


def nodes_in(value: object) -> Iterator[fx.Node]:
    """The nodes among an argument's values."""
    if isinstance(value, fx.Node):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from nodes_in(item)


def value_of(node: fx.Node) -> Any:
    return node.meta.get("val")


def same_sizes(sizes: Sequence[Any], others: Sequence[Any]) -> bool:
    """Whether they are equal for all values of the dims that vary."""
    return len(sizes) == len(others) and all(
        statically_known_true(a == b) for a, b in zip(sizes, others, strict=True)
    )


def is_float32(node: Any) -> bool:
    return has_dtype(node, torch.float32)


def has_dtype(node: Any, dtype: torch.dtype) -> bool:
    value = value_of(node) if isinstance(node, fx.Node) else None
    return isinstance(value, torch.Tensor) and value.dtype == dtype


def is_cast(node: fx.Node, dtype: torch.dtype) -> bool:
    """Whether the node does nothing but convert its argument to the dtype."""
    if node.op != "call_function" or node.target not in CASTS or not has_dtype(node, dtype):
        return False
    _, *options = all_arguments(node)
    others = [o for o in options if o is not None and not isinstance(o, torch.dtype)]
    return not any(others)  # of False, nothing follows


def is_widening(node: fx.Node) -> bool:
    """Whether the node is what was bfloat16, in float32."""
    return is_cast(node, torch.float32) and has_dtype(node.args[0], torch.bfloat16)


def is_only_read(node: fx.Node, returned: bool) -> bool:
    """Whether nothing writes to the node's value, nor to a view of it.

    returned: whether the program may return it. (Two results must not have the same memory.)
    """
    for user in node.users:
        if user.op == "output" and returned:
            continue
        if user.target == operator.getitem:
            is_view = True
        elif isinstance(user.target, torch._ops.OpOverload):
            aliases = [
                alias
                for _, value, alias in arguments_of(user)
                if alias is not None and node in nodes_in(value)
            ]
            if any(alias.is_write for alias in aliases):
                return False
            is_view = bool(aliases)
        else:
            return False
        if is_view and not is_only_read(user, returned):
            return False
    return True
