"""Compiles recurrent layers as calls of one operator, but for a small, constant number of steps.

Inductor would write out every step of every layer and direction: 200 steps of a GRU with two layers
take minutes. These stand in its graph for PyTorch's operators, and dispatch.py writes calls of
PyTorch's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, fx
from torch.library import Library

from aoti_driver.program import recurrent

_LIBRARY = Library("rules_aoti", "DEF")  # type: ignore[no-untyped-call]


def _stand_in(operator: Any) -> Any:
    """An operator with the same arguments that torch can't write out."""
    schema = operator._schema
    name = schema.name.removeprefix("aten::")
    _, _, signature = str(schema).partition("(")
    _LIBRARY.define(f"{name}({signature}")  # type: ignore[no-untyped-call]
    stand_in = getattr(torch.ops.rules_aoti, name).default
    torch.library.register_fake(f"rules_aoti::{name}", _results, lib=_LIBRARY)
    return stand_in


def _results(x: Tensor, states: Tensor | Sequence[Tensor], *options: Any) -> tuple[Tensor, ...]:
    """As PyTorch allocates the results of [steps, batch, features]."""
    given = [states] if isinstance(states, Tensor) else list(states)
    steps, batch, _ = x.shape
    bidirectional = options[5]
    output = x.new_empty((steps, batch, given[0].shape[-1] * (2 if bidirectional else 1)))
    return output, *(state.new_empty(state.shape) for state in given)


_STAND_INS = {operator: _stand_in(operator) for operator in recurrent.OPERATORS}


def _call_of(operator: Any) -> Callable[..., tuple[Any, list[Any]]]:
    return lambda *arguments: (operator, list(arguments))


# For dispatch.py: what the code calls for each.
TWINS = {stand_in: _call_of(operator) for operator, stand_in in _STAND_INS.items()}


def called_whole(module: fx.GraphModule, on_gpu: bool) -> None:
    """Puts the stand-ins into the graph, its branches and loops.

    on_gpu: there, no kernel takes all steps, so a constant number of them is always written out.

    All take [steps, batch, features]: for the other order, PyTorch's result has strides that depend
    on the CPU.
    """
    changed = set()
    for node in list(recurrent.whole(module, constant=not on_gpu)):
        graph = node.graph
        changed.add(graph)
        arguments = list(node.args)
        if recurrent.batch_first(node):
            with graph.inserting_before(node):
                arguments[0] = _transposed(graph, arguments[0])
            arguments[8] = False
            for result in [user for user in node.users if user.args[1] == 0]:
                users = list(result.users)
                with graph.inserting_after(result):
                    transposed = _transposed(graph, result)
                for user in users:
                    user.replace_input_with(result, transposed)
        node.target = _STAND_INS[node.target]
        node.args = tuple(arguments)
    for part in module.modules():
        if isinstance(part, fx.GraphModule) and part.graph in changed:
            part.recompile()


def _transposed(graph: fx.Graph, value: Any) -> fx.Node:
    node = graph.call_function(torch.ops.aten.transpose.int, (value, 0, 1))
    node.meta = {k: v for k, v in value.meta.items() if k in ("nn_module_stack", "from_node")}
    if "val" in value.meta:
        node.meta["val"] = value.meta["val"].transpose(0, 1)
    return node
