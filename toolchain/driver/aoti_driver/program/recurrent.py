"""Keeps nn.LSTM, nn.GRU and nn.RNN whole where their number of steps is a size of the call.

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

# All of them take the same arguments.
OPERATORS: tuple[Any, ...] = (
    _aten.lstm.input,
    _aten.gru.input,
    _aten.rnn_tanh.input,
    _aten.rnn_relu.input,
)


@contextlib.contextmanager
def kept_whole() -> Iterator[None]:
    """torch.export takes any number of steps inside the block."""
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
            not isinstance(steps, torch.SymInt)
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
        return output.transpose(0, 1) if batch_first else output, list(states)

    with patching.replaced({_LAYERS: results}):
        yield


def whole(module: fx.GraphModule) -> Iterator[fx.Node]:
    """The calls in a graph, its branches and loops, whose number of steps isn't constant."""
    for part in module.modules():
        if isinstance(part, fx.GraphModule):
            for operator in OPERATORS:
                for node in part.graph.find_nodes(op="call_function", target=operator):
                    if _steps_vary(node):
                        yield node


def batch_first(node: fx.Node) -> bool:
    """Whether the input is [batch, steps, features], and not [steps, batch, features]."""
    return bool(node.args[8] if len(node.args) > 8 else node.kwargs["batch_first"])


def _steps_vary(node: fx.Node) -> bool:
    value = node.args[0]
    assert isinstance(value, fx.Node)
    return isinstance(value.meta["val"].shape[1 if batch_first(node) else 0], torch.SymInt)
