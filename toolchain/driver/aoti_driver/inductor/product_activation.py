"""A linear layer with its activation, as one operator.

`fuse` puts it into graphs in the place of `linear` and of `gelu` or `relu` behind it. Inductor
would write a loop for the activation, which reads and writes the layer's result once more; the
generated code calls `aten::_addmm_activation`, for which the slim runtime, libtorch and stock
PyTorch have a function.

A layer of bfloat16 or float16 is fused in the same way, also if its result is widened for the
activation and narrowed after it.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, fx

from aoti_driver.inductor import own_operators
from aoti_driver.program.graph_nodes import write_anew
from aoti_driver.torch_internals import patching

_ATEN: Any = torch.ops.aten


def _reference(x: Tensor, weight: Tensor, bias: Tensor, gelu: bool) -> Tensor:
    y = torch.nn.functional.linear(x, weight, bias)
    return torch.nn.functional.gelu(y) if gelu else torch.relu(y)


OPERATOR = own_operators.declare(
    "linear_activation(Tensor x, Tensor weight, Tensor bias, bool gelu) -> Tensor",
    _reference,
)

# Whether an activation is gelu.
_ACTIVATIONS = {
    _ATEN.gelu.default: True,
    _ATEN.gelu_.default: True,
    _ATEN.relu.default: False,
    _ATEN.relu_.default: False,
}


_DTYPES = (torch.float32, torch.bfloat16, torch.float16)


def fuse(module: fx.GraphModule) -> None:
    """Puts the operator into the graph. All other nodes have the values that they had, but that a
    result of 16 bits is rounded once.
    """
    graph, changed = module.graph, False
    for linear in graph.find_nodes(op="call_function", target=_ATEN.linear.default):
        layer = _Layer.of(linear)
        if layer is None:
            continue
        changed = True
        with graph.inserting_before(linear):
            fused = graph.call_function(OPERATOR, (*_arguments(linear), layer.gelu))
        fused.meta = {**linear.meta}
        for result in layer.results:
            result.replace_all_uses_with(fused)
        for node in layer.nodes:
            graph.erase_node(node)
    write_anew(module, changed)


def _arguments(linear: fx.Node) -> list[Any]:
    given = dict(zip(("input", "weight", "bias"), linear.args, strict=False)) | linear.kwargs
    return [given["input"], given["weight"], given.get("bias")]


@dataclasses.dataclass(frozen=True)
class _Layer:
    """A linear layer with its activation.

    results: the nodes that have the activated result, in the layer's dtype. nodes: all of the
    layer, each before what it reads.
    """

    results: list[fx.Node]
    nodes: list[fx.Node]
    gelu: bool

    @classmethod
    def of(cls, linear: fx.Node) -> _Layer | None:
        """None if there is no activation, or if something else reads what would not exist."""
        dtype = _dtype(linear)
        if dtype is None or len(linear.users) != 1:
            return None
        nodes = [linear]
        (user,) = linear.users
        wide = dtype != torch.float32 and _is_cast(user, torch.float32)
        if wide:
            if len(user.users) != 1:
                return None
            nodes.insert(0, user)
            (user,) = user.users
        gelu = _ACTIVATIONS.get(user.target)
        if gelu is None or user.args[1:] or user.kwargs.get("approximate", "none") != "none":
            return None
        nodes.insert(0, user)
        if not wide:
            return cls([user], nodes, gelu)
        results = list(user.users)
        if not all(_is_cast(result, dtype) for result in results):
            return None
        return cls(results, [*results, *nodes], gelu)


def _is_cast(node: fx.Node, dtype: torch.dtype) -> bool:
    return node.target is _ATEN._to_copy.default and node.kwargs == {"dtype": dtype}


def _dtype(linear: fx.Node) -> torch.dtype | None:
    """Of all the layer's tensors; None if it can't be fused."""
    dtypes = set()
    for argument, ranks in zip(_arguments(linear), ((2, 3, 4), (2,), (1,)), strict=True):
        value = argument.meta.get("val") if isinstance(argument, fx.Node) else None
        if not isinstance(value, Tensor) or value.dim() not in ranks:
            return None
        dtypes.add(value.dtype)
    return dtypes.pop() if len(dtypes) == 1 and dtypes <= {*_DTYPES} else None


@contextlib.contextmanager
def lowered() -> Iterator[None]:
    """Lets Inductor generate calls of `aten::_addmm_activation`."""
    from torch._inductor import lowering

    fallback = lowering.fallback_handler(  # type: ignore[no-untyped-call]
        _ATEN._addmm_activation.default, add_to_fallback_set=False
    )

    def lower(x: Any, weight: Any, bias: Any, gelu: bool) -> Any:
        *rows, depth = x.get_size()
        columns = weight.get_size()[0]
        count = 1
        for size in rows:
            count = count * size
        left, right = lowering.view(x, [count, depth]), lowering.permute(weight, [1, 0])
        result = fallback(bias, left, right, use_gelu=gelu)
        return lowering.view(result, [*rows, columns])

    with patching.entries_kept("torch._inductor.lowering:lowerings", [OPERATOR]) as lowerings:
        lowerings[OPERATOR] = lower
        yield
