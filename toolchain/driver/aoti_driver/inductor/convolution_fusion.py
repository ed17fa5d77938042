"""Fuses convolutions, transposed ones too, with what is around them: padding, batch normalization,
an activation, and the sum with a residual, which may have fewer channels.

Inductor would write loops of their own for these, which read and write the whole image once more.
The fused convolution is one operator (convolution_epilogue.py). Its channels are contiguous.
Inductor has that layout for images alone, so every convolution of lines and volumes becomes this
operator: else each would copy its input and its result.

A convolution of bfloat16 becomes the operator if float32 is made of its result, and nothing else:
the operator does not round the sums. It rounds its result if all that reads it reads bfloat16.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from types import NoneType
from typing import Any

import torch
from torch import fx

from aoti_driver.inductor.convolution_epilogue import OPERATOR, Activation
from aoti_driver.program.graph_nodes import (
    all_arguments,
    caller,
    has_dtype,
    is_cast,
    is_float32,
    is_functional,
    is_widening,
    origin,
    same_sizes,
    value_of,
    write_anew,
)

_ATEN: Any = torch.ops.aten
_PADS = (_ATEN.pad.default, _ATEN.constant_pad_nd.default)
_BATCH_NORM = _ATEN.batch_norm.default


@dataclasses.dataclass
class _Convolution:
    """A convolution while its neighbours are found. nodes: what it replaces, in the graph's order;
    the result is the value of the last one.
    """

    node: fx.Node
    nodes: list[fx.Node]
    x: fx.Node
    weight: fx.Node
    bias: fx.Node | None
    stride: list[int]
    before: list[int]
    after: list[int]
    dilation: list[int]
    groups: int
    transposed: bool
    cast: fx.Node | None = None
    norm: fx.Node | None = None
    residual: fx.Node | None = None
    residual_last: bool = False
    activation: Activation = Activation.NONE
    low: float = 0.0
    high: float = 0.0
    narrow: bool = False

    @property
    def last(self) -> fx.Node:
        return self.nodes[-1]


def fuse(module: fx.GraphModule) -> None:
    """Puts the operator into the graph. The values of all other nodes, strides included, remain
    what they are.
    """
    graph, changed = module.graph, False
    for node in list(graph.nodes):
        found = _convolution(node)
        if found is None:
            continue
        while _take_next(found):
            pass
        # A bias alone is an argument of aten.convolution.
        alone = len(found.nodes) == 1 and not _is_concatenated(found.last)
        if alone and (_rank(found.x) == 4 or found.transposed):
            continue
        if _nothing_is_written(found):
            _replace(graph, found)
            changed = True
    write_anew(module, changed)


def _convolution(node: fx.Node) -> _Convolution | None:
    if node.op != "call_function" or node.target not in CONVOLUTIONS:
        return None
    arguments = CONVOLUTIONS[node.target](*all_arguments(node))
    x, weight, bias, stride, padding, dilation, groups, output_padding = arguments
    tensors = [t for t in (x, weight, bias) if t is not None]
    rank = _rank(x)
    if rank < 3 or _rank(weight) != rank:
        return None
    cast = None
    if not all(is_float32(t) for t in tensors):
        cast = _widening(node)
        if cast is None or not all(has_dtype(t, torch.bfloat16) for t in tensors):
            return None
    dims = rank - 2
    kernel = value_of(weight).shape[2:]
    if padding == "valid":
        padding = [0]
    lists = [_ints(values, dims) for values in (stride, dilation, kernel)]
    if any(values is None for values in lists) or not isinstance(groups, int):
        return None
    steps, spread, size = lists
    assert steps is not None and spread is not None and size is not None
    if padding == "same":
        totals = [d * (k - 1) for d, k in zip(spread, size, strict=True)]
        before = [total // 2 for total in totals]
        after = [total - b for total, b in zip(totals, before, strict=True)]
    else:
        both = _ints(padding, dims)
        if both is None:
            return None
        before, after = [*both], [*both]
    transposed = output_padding is not None
    if transposed:
        more = _ints(output_padding, dims)
        if more is None:
            return None
        after = [a - m for a, m in zip(after, more, strict=True)]
    found = _Convolution(
        *(node, [node], x, weight, bias, steps, before, after, spread, groups, transposed)
    )
    if cast is not None:
        found.cast = cast
        found.nodes.append(cast)
        return found if transposed or before == after else None
    if not transposed:
        _take_padding(found)
    return found


def _widening(node: fx.Node) -> fx.Node | None:
    """The only user of the node, if it makes float32 of it."""
    if len(node.users) != 1:
        return None
    (user,) = node.users
    return user if is_cast(user, torch.float32) else None


def _take_padding(found: _Convolution) -> None:
    pad, dims = found.x, len(found.before)
    x, zeros = _zeros_around(pad)
    if x is None or any(map(any, zeros[dims:])):
        return
    around = [*zeros[:dims], *[(0, 0)] * (dims - len(zeros))][::-1]
    found.before = [n + more for n, (more, _) in zip(found.before, around, strict=True)]
    found.after = [n + more for n, (_, more) in zip(found.after, around, strict=True)]
    found.x = x
    found.nodes.insert(0, pad)


def _zeros_around(pad: fx.Node) -> tuple[Any, list[tuple[int, int]]]:
    """What the node pads, and the zeros before and behind each dim, the last dim first; None if it
    does anything else, or if others read it.
    """
    if pad.op != "call_function" or pad.target not in _PADS or len(pad.users) != 1:
        return None, []
    x, sizes, *others = all_arguments(pad)
    values = [value for value in others if value not in (None, "constant")]
    known = all(isinstance(size, int) and size >= 0 for size in sizes)
    if any(value != 0 for value in values) or not known:
        return None, []
    return x, [*zip(sizes[::2], sizes[1::2], strict=True)]


def _take_next(found: _Convolution) -> bool:
    """Adds the only user of the result, if the operator can compute it too."""
    if len(found.last.users) != 1 or found.narrow:
        return False
    (user,) = found.last.users
    taken = user.op == "call_function" and (
        _take_norm(found, user)
        or _take_residual(found, user)
        or _take_activation(found, user)
        or _take_rounding(found, user)
    )
    if taken:
        found.nodes.append(user)
    return taken


def _take_norm(found: _Convolution, user: fx.Node) -> bool:
    if user.target != _BATCH_NORM or found.last not in (found.node, found.cast):
        return False
    x, *values, training, _, epsilon, _ = all_arguments(user)
    mean, variance = values[2:]
    floats = all(value is None or is_float32(value) for value in values)
    if x is not found.last or training or mean is None or variance is None or not floats:
        return False
    if not isinstance(epsilon, float):
        return False
    found.norm = user
    return True


def _take_residual(found: _Convolution, user: fx.Node) -> bool:
    if user.target not in (_ATEN.add.Tensor, _ATEN.add_.Tensor) or found.residual is not None:
        return False
    a, b, *_ = user.args
    others = [value for value in (a, b) if value is not found.last]
    if len(others) != 1 or not isinstance(others[0], fx.Node) or user.kwargs.get("alpha", 1) != 1:
        return False
    other = others[0]
    if user.target == _ATEN.add_.Tensor and a is not found.last:
        return False  # it writes to the other one
    if not is_float32(other) or not same_sizes(value_of(other).shape, value_of(found.last).shape):
        return False
    is_widened = found.cast is not None and is_widening(other)
    found.residual = other.args[0] if is_widened else other  # type: ignore[assignment]
    fewer = _with_fewer_channels(other, len(found.before))
    if found.cast is None and fewer is not None:
        found.residual = fewer
        replaced = {*found.nodes, other}
        found.nodes = [node for node in user.graph.nodes if node in replaced]
    found.residual_last = found.activation != Activation.NONE
    return True


def _with_fewer_channels(node: fx.Node, dims: int) -> Any:
    """What the node puts channels of zeros behind; None if it does anything else."""
    x, zeros = _zeros_around(node)
    others = [n for d, both in enumerate(zeros) for n in (both[:1] if d == dims else both)]
    return None if len(zeros) <= dims or any(others) else x


def _take_activation(found: _Convolution, user: fx.Node) -> bool:
    read = _ACTIVATIONS.get(user.target)
    if read is None or found.activation != Activation.NONE:
        return False
    x, *options = all_arguments(user)
    if x is not found.last or not all(isinstance(o, (int, float, str, NoneType)) for o in options):
        return False
    found.activation, found.low, found.high = read(*options)
    return found.activation != Activation.NONE


def _take_rounding(found: _Convolution, user: fx.Node) -> bool:
    found.narrow = is_cast(user, torch.bfloat16)
    return found.narrow


def _is_concatenated(node: fx.Node) -> bool:
    """Whether it is a part of a concatenation, to which the operator can write: see
    concatenation.py.
    """
    return any(user.target == _ATEN.cat.default for user in node.users)


def _nothing_is_written(found: _Convolution) -> bool:
    """Whether everything that the convolution reads is the same at the place of its last node."""
    node = found.nodes[0]
    while node is not found.last:
        if node not in found.nodes and not is_functional(node):
            return False
        node = node.next
    return True


def scale_and_shift(
    call: Callable[..., fx.Node], norm: fx.Node, before: fx.Node | None
) -> tuple[fx.Node, fx.Node]:
    """What a batch norm with stored statistics is for each channel: a factor and a summand.

    before: a summand that its input still lacks.
    """
    _, weight, bias, mean, variance, _, _, epsilon, _ = all_arguments(norm)
    scale = call(_ATEN.rsqrt.default, call(_ATEN.add.Tensor, variance, epsilon))
    if weight is not None:
        scale = call(_ATEN.mul.Tensor, scale, weight)
    if before is not None:
        mean = call(_ATEN.sub.Tensor, mean, before)
    shift = call(_ATEN.neg.default, call(_ATEN.mul.Tensor, mean, scale))
    return scale, shift if bias is None else call(_ATEN.add.Tensor, shift, bias)


def _replace(graph: fx.Graph, found: _Convolution) -> None:
    with graph.inserting_before(found.last):
        scale, shift = None, found.bias
        if found.cast is not None and shift is not None:
            shift = caller(graph, found.node)(_ATEN.to.dtype, shift, torch.float32)
        if found.norm is not None:
            scale, shift = scale_and_shift(caller(graph, found.node), found.norm, shift)
        fused = graph.call_function(
            OPERATOR,
            (
                *(found.x, found.weight, scale, shift, found.residual),
                *(found.stride, found.before, found.after, found.dilation, found.groups),
                *(int(found.activation), found.residual_last, found.low, found.high),
                *(found.transposed, found.narrow),
            ),
        )
        fused.meta = {**found.last.meta, **origin(found.node)}
    found.last.replace_all_uses_with(fused)
    for node in reversed(found.nodes):
        graph.erase_node(node)


def _rank(node: Any) -> int:
    value = value_of(node) if isinstance(node, fx.Node) else None
    return value.dim() if isinstance(value, torch.Tensor) else -1


def _ints(values: Any, dims: int) -> list[int] | None:
    """One for each spatial dim."""
    if not isinstance(values, (list, tuple, torch.Size)):
        return None
    if not all(isinstance(value, int) for value in values) or len(values) not in (1, dims):
        return None
    return [int(value) for value in (values if len(values) == dims else [values[0]] * dims)]


def _of_convolution(
    x: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any, *others: Any
) -> tuple[Any, ...]:
    transposed, output_padding, groups = others
    more = output_padding if transposed else None
    return x, weight, bias, stride, padding, dilation, groups, more


def _of_transposed(
    x: Any, weight: Any, bias: Any, stride: Any, padding: Any, more: Any, groups: Any, dilation: Any
) -> tuple[Any, ...]:
    return x, weight, bias, stride, padding, dilation, groups, more


# What each operator's arguments say: input, weight, bias, stride, padding, dilation, groups, and
# the output_padding if the convolution is transposed.
CONVOLUTIONS: Mapping[Any, Callable[..., tuple[Any, ...]]] = {
    **{
        getattr(getattr(_ATEN, f"conv{dims}d"), overload): lambda *arguments: (*arguments, None)
        for dims in (1, 2, 3)
        for overload in ("default", "padding")
    },
    _ATEN.conv_transpose1d.default: _of_transposed,
    _ATEN.conv_transpose2d.input: _of_transposed,
    _ATEN.conv_transpose3d.input: _of_transposed,
    _ATEN.convolution.default: _of_convolution,
}


def _clamp(low: float | None, high: float | None) -> tuple[Activation, float, float]:
    lower = -math.inf if low is None else float(low)
    upper = math.inf if high is None else float(high)
    return Activation.CLAMP, lower, upper


def _gelu(approximate: str) -> tuple[Activation, float, float]:
    return (Activation.GELU if approximate == "none" else Activation.NONE), 0.0, 0.0


# What each operator's options say: the activation, its lower and its upper number. NONE is one that
# the operator doesn't have.
_OUT_OF_PLACE: Mapping[str, Callable[..., tuple[Activation, float, float]]] = {
    "relu": lambda: _clamp(0, None),
    "relu6": lambda: _clamp(0, 6),
    "hardtanh": _clamp,
    "clamp": _clamp,
    "silu": lambda: (Activation.SILU, 0.0, 0.0),
    "hardswish": lambda: (Activation.HARDSWISH, 0.0, 0.0),
    "leaky_relu": lambda slope: (Activation.LEAKY_RELU, float(slope), 0.0),
    "gelu": _gelu,
}
_ACTIVATIONS: Mapping[Any, Callable[..., tuple[Activation, float, float]]] = {
    getattr(_ATEN, name + suffix).default: read
    for name, read in _OUT_OF_PLACE.items()
    for suffix in ("", "_")
}
# What is one operator with the convolution before it, whatever else the two read.
FUSED_BEHIND = frozenset({_BATCH_NORM, *_ACTIVATIONS})
