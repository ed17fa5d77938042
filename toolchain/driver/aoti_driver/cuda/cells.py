"""Writes cells of LSTMs and GRUs as products and functions of single numbers.

Of tensors on a GPU, PyTorch makes one operator of what follows the products: it has none for the
CPU, and does not know the shapes of its results.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import fx

from aoti_driver.program.graph_nodes import value_of_call

_aten: Any = torch.ops.aten


class _Writer:
    """Puts calls before a node."""

    def __init__(self, module: fx.GraphModule, node: fx.Node) -> None:
        self._module, self._node = module, node

    def __call__(self, function: Any, *args: Any) -> fx.Node:
        with self._node.graph.inserting_before(self._node):
            result = self._node.graph.call_function(function, args)
        value = value_of_call(function, args, value=self._value)
        result.meta = {**self._node.meta, "val": value}
        return result

    def _value(self, node: fx.Node) -> Any:
        if "val" in node.meta:
            return node.meta["val"]
        assert node.op == "get_attr"
        return operator.attrgetter(str(node.target))(self._module)

    def gates(self, x: fx.Node, weight: fx.Node, bias: fx.Node | None, count: int) -> list[fx.Node]:
        every = self(_aten.linear.default, x, weight, bias)
        parts = self(_aten.chunk.default, every, count, -1)
        return [self(operator.getitem, parts, number) for number in range(count)]

    def add(self, a: fx.Node, b: fx.Node) -> fx.Node:
        return self(_aten.add.Tensor, a, b)

    def mul(self, a: fx.Node, b: fx.Node) -> fx.Node:
        return self(_aten.mul.Tensor, a, b)

    def sigmoid(self, a: fx.Node) -> fx.Node:
        return self(_aten.sigmoid.default, a)

    def tanh(self, a: fx.Node) -> fx.Node:
        return self(_aten.tanh.default, a)


def written_out(module: fx.GraphModule) -> None:
    for target, write in _CELLS.items():
        for node in module.graph.find_nodes(op="call_function", target=target):
            x, state, *weights = node.args
            # Biases that are not there may be left out.
            weights += [None] * (4 - len(weights))
            write(_Writer(module, node), node, x, state, weights)
            module.graph.erase_node(node)
    module.recompile()


def _gru(w: _Writer, node: fx.Node, x: fx.Node, state: fx.Node, weights: Sequence[fx.Node]) -> None:
    of_x, of_state, x_bias, state_bias = weights
    x_reset, x_update, x_new = w.gates(x, of_x, x_bias, 3)
    reset, update, new = w.gates(state, of_state, state_bias, 3)
    reset, update = (w.sigmoid(w.add(a, b)) for a, b in ((x_reset, reset), (x_update, update)))
    new = w.tanh(w.add(x_new, w.mul(reset, new)))
    kept = w.mul(update, w(_aten.sub.Tensor, state, new))
    node.replace_all_uses_with(w.add(new, kept))


def _lstm(
    w: _Writer, node: fx.Node, x: fx.Node, states: Sequence[fx.Node], weights: Sequence[fx.Node]
) -> None:
    of_x, of_state, x_bias, state_bias = weights
    state, cell = states
    pairs = zip(w.gates(x, of_x, x_bias, 4), w.gates(state, of_state, state_bias, 4), strict=True)
    take, forget, new, out = (w.add(a, b) for a, b in pairs)
    added = w.mul(w.sigmoid(take), w.tanh(new))
    cell = w.add(w.mul(w.sigmoid(forget), cell), added)
    state = w.mul(w.sigmoid(out), w.tanh(cell))
    for user in list(node.users):
        assert user.target is operator.getitem
        user.replace_all_uses_with(cell if user.args[1] else state)
        node.graph.erase_node(user)


_CELLS: dict[Any, Callable[..., None]] = {
    _aten.gru_cell.default: _gru,
    _aten.lstm_cell.default: _lstm,
}
