"""Keeps nn.LSTM, nn.GRU and nn.RNN whole where they have many steps, or a number that varies.

An exported program has them as one operator each, with all layers and directions
(``aten.lstm.input``), as stock PyTorch has them too. To find the shapes of the results, torch
computes all steps, which makes their number a constant. Here the shapes follow from those of the
arguments.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, fx
from torch.fx.experimental.proxy_tensor import get_proxy_mode

from aoti_driver.torch_internals import patching

_LAYERS = "torch._decomp.decompositions:_rnn_helper"
_aten: Any = torch.ops.aten

# Of a constant number. Written out, so few steps fuse with what is around them.
WRITTEN_OUT = 8

# All of them take the same arguments.
OPERATORS: tuple[Any, ...] = (
    _aten.lstm.input,
    _aten.gru.input,
    _aten.rnn_tanh.input,
    _aten.rnn_relu.input,
)


@contextlib.contextmanager
def kept_whole() -> Iterator[None]:
    """torch.export takes any number of steps inside the block, and as fast as a few."""
    computed = patching.original(_LAYERS)

    def results(
        x: Tensor,
        states: Sequence[Any],
        params: Any,
        has_biases: bool,
        layers: int,
        dropout: float,
        train: bool,
        bidirectional: bool,
        batch_first: bool,
        layer: Any,
    ) -> tuple[Tensor, list[Any]]:
        steps = x.shape[1 if batch_first else 0]
        one_by_one = (
            not _many(steps)
            or x.dim() != 3  # a packed sequence
            or (train and dropout > 0)
            or get_proxy_mode() is not None  # the operators of all steps are recorded
        )
        if one_by_one:
            options = (dropout, train, bidirectional, batch_first)
            result: tuple[Tensor, list[Any]] = computed(
                x, states, params, has_biases, layers, *options, layer
            )
            return result
        hidden = states[0][0] if isinstance(states[0], tuple) else states[0]
        batch = x.shape[0 if batch_first else 1]
        width = hidden.shape[-1] * (2 if bidirectional else 1)
        output = x.new_empty((steps, batch, width))
        return output.transpose(0, 1) if batch_first else output, [_like(one) for one in states]

    with patching.replaced({_LAYERS: results}):
        yield


def _like(state: Any) -> Any:
    """New tensors for those of a state: results that are inputs would pass for aliases of them."""
    if isinstance(state, tuple):
        return tuple(_like(one) for one in state)
    return state.new_empty(state.shape)


def whole(module: fx.GraphModule, constant: bool = False) -> Iterator[fx.Node]:
    """The calls in a graph, its branches and loops, whose number of steps isn't constant.

    constant: also those with a constant number of more than WRITTEN_OUT.
    """
    for part in module.modules():
        if isinstance(part, fx.GraphModule):
            for operator in OPERATORS:
                for node in part.graph.find_nodes(op="call_function", target=operator):
                    steps = _steps(node)
                    varies = isinstance(steps, torch.SymInt)
                    if varies or (constant and _many(steps) and not _random(node)):
                        yield node


def batch_first(node: fx.Node) -> bool:
    """Whether the input is [batch, steps, features], and not [steps, batch, features]."""
    return bool(_argument(node, 8, "batch_first"))


def _steps(node: fx.Node) -> int | torch.SymInt:
    value = node.args[0]
    assert isinstance(value, fx.Node)
    steps: int | torch.SymInt = value.meta["val"].shape[1 if batch_first(node) else 0]
    return steps


def _many(steps: int | torch.SymInt) -> bool:
    return isinstance(steps, torch.SymInt) or steps > WRITTEN_OUT


def _random(node: fx.Node) -> bool:
    """Whether it drops out activations, with random numbers that Inductor takes in its order."""
    return bool(_argument(node, 6, "train")) and bool(_argument(node, 5, "dropout"))


def _argument(node: fx.Node, place: int, name: str) -> Any:
    return node.args[place] if len(node.args) > place else node.kwargs[name]
