"""``precision = "int8"``: weights of linear layers and tables as int8, with a scale for each row.

A product with such a weight takes its other operand as int8 too, with a scale for each of its rows
that the call computes (PyTorch names this dynamic quantization). The sums are int32, and exact;
scales, bias and all that follows are float32.
"""

from __future__ import annotations

import gc
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, fx
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind, InputSpec, TensorArgument

from aoti_driver.program.graph_nodes import value_of_call
from aoti_driver.program.signature import replace_node, written_tensors
from aoti_driver.program.storage import names_by_memory

SCALES = "_scales"
# With fewer columns, quantizing the other operand takes about as long as the product.
MIN_COLUMNS = 64
# With fewer rows, a matrix is hardly read.
MIN_ROWS = 16
# The smallest divisor: a row of zeros has a scale, too.
_SMALLEST = 1e-30
_STEPS = 127.0

_aten = torch.ops.aten


def lower(ep: ExportedProgram) -> None:
    """Changes the program in place."""
    placeholders = {node.name: node for node in ep.graph.find_nodes(op="placeholder")}
    inputs = {
        spec.target: placeholders[spec.arg.name]
        for spec in ep.graph_signature.input_specs
        if spec.kind is InputKind.PARAMETER and spec.target is not None
    }
    for name in _suitable(ep, inputs):
        weight = inputs[name]
        stored, scales = quantized(ep.state_dict.pop(name))
        ep.state_dict[name] = torch.nn.Parameter(stored, requires_grad=False)
        ep.state_dict[name + SCALES] = torch.nn.Parameter(scales, requires_grad=False)
        of_scales = _add_input(ep, weight, name + SCALES)
        weight.meta = {**weight.meta, "val": weight.meta["val"].to(torch.int8)}
        for user in list(weight.users):
            _replace_use(ep, user, weight, of_scales)
    ep.graph.eliminate_dead_code()
    ep.graph.lint()
    ep.graph_module.recompile()


def quantized(weight: Tensor) -> tuple[Tensor, Tensor]:
    """The numbers of a matrix, and the scale of each row."""
    weight = weight.detach()
    scales = weight.abs().amax(1).clamp(min=_SMALLEST) / _STEPS
    return (weight / scales[:, None]).round_().to(torch.int8), scales


def _suitable(ep: ExportedProgram, inputs: dict[str, fx.Node]) -> list[str]:
    """The parameters that become int8. Those that are one tensor become so together, or not."""
    written = written_tensors(ep)
    gc.collect()  # modules of the export are parts of cycles, and have the same matrices
    return [
        names[0]
        for names in names_by_memory(ep)
        if len(names) == 1
        and names[0] in inputs
        and names[0] not in written
        and names[0] + SCALES not in ep.state_dict
        and _is_large_matrix(ep.state_dict[names[0]])
        and _is_only_multiplied(inputs[names[0]])
    ]


def _is_large_matrix(tensor: Tensor) -> bool:
    if tensor.dtype != torch.float32 or tensor.dim() != 2 or not tensor.is_contiguous():
        return False
    rows, columns = tensor.shape
    return rows >= MIN_ROWS and columns >= MIN_COLUMNS and bool(tensor.isfinite().all())


def _is_only_multiplied(weight: fx.Node) -> bool:
    return bool(weight.users) and all(_is_use(user, weight) for user in weight.users)


def _is_use(node: fx.Node, weight: fx.Node) -> bool:
    if node.target is _aten.embedding.default:
        return node.args[0] is weight and weight not in node.args[1:]
    if node.target is not _aten.linear.default or node.kwargs:
        return False
    x = node.args[0]
    return (
        node.args[1] is weight
        and weight not in (x, *node.args[2:])
        and isinstance(x, fx.Node)
        and x.meta["val"].dtype == torch.float32
    )


def _add_input(ep: ExportedProgram, weight: fx.Node, target: str) -> fx.Node:
    """A parameter behind that of the weight, in the graph and in its signature."""
    value = weight.meta["val"]
    with ep.graph.inserting_after(weight):
        node: fx.Node = ep.graph.placeholder(weight.name + SCALES)
    node.meta = {"val": value.new_empty(value.shape[:1], dtype=torch.float32)}
    specs = ep.graph_signature.input_specs
    place = [spec.arg.name for spec in specs].index(weight.name)
    argument = TensorArgument(name=node.name)
    specs.insert(place + 1, InputSpec(InputKind.PARAMETER, argument, target))
    return node


def _replace_use(ep: ExportedProgram, node: fx.Node, weight: fx.Node, scales: fx.Node) -> None:
    write = _Writer(node)
    lookup = node.target is _aten.embedding.default
    result = (_lookup if lookup else _product)(write, node, weight, scales)
    replace_node(ep, node, result)


class _Writer:
    """Writes calls before a node; what they give is found by calling them with fake tensors."""

    def __init__(self, before: fx.Node) -> None:
        self._before = before

    def __call__(self, target: Any, *args: Any, **kwargs: Any) -> fx.Node:
        with self._before.graph.inserting_before(self._before):
            call = self._before.graph.call_function(target, args, kwargs)
        call.meta = {**self._before.meta, "val": value_of_call(target, args, kwargs)}
        return call


def _lookup(write: _Writer, node: fx.Node, weight: fx.Node, scales: fx.Node) -> fx.Node:
    rows = write(_aten._to_copy.default, write(node.target, *node.args), dtype=torch.float32)
    column = write(_aten.unsqueeze.default, scales, 1)
    factors = write(_aten.embedding.default, column, node.args[1])
    return write(_aten.mul.Tensor, rows, factors)


def _product(write: _Writer, node: fx.Node, weight: fx.Node, scales: fx.Node) -> fx.Node:
    x = node.args[0]
    assert isinstance(x, fx.Node)
    rows, columns = weight.meta["val"].shape
    sizes = _sizes(write, x)
    flat = write(_aten.reshape.default, x, [-1, columns])
    largest = write(_aten.amax.default, write(_aten.abs.default, flat), [-1], True)
    largest = write(_aten.clamp_min.default, largest, _SMALLEST)
    factor = write(_aten.mul.Tensor, write(_aten.reciprocal.default, largest), _STEPS)
    rounded = write(_aten.round.default, write(_aten.mul.Tensor, flat, factor))
    numbers = write(_aten._to_copy.default, rounded, dtype=torch.int8)
    sums = write(_aten._int_mm.default, numbers, write(_aten.t.default, weight))
    step = write(_aten.mul.Tensor, largest, 1 / _STEPS)
    result = write(_aten.mul.Tensor, write(_aten._to_copy.default, sums, dtype=torch.float32), step)
    result = write(_aten.mul.Tensor, result, scales)
    if len(node.args) > 2 and node.args[2] is not None:
        result = write(_aten.add.Tensor, result, node.args[2])
    return write(_aten.reshape.default, result, [*sizes, rows])


def _sizes(write: _Writer, x: fx.Node) -> Sequence[Any]:
    """All sizes but the last one: numbers, and nodes where they vary."""
    sizes = x.meta["val"].shape[:-1]
    return [
        size if isinstance(size, int) else write(_aten.sym_size.int, x, dim)
        for dim, size in enumerate(sizes)
    ]
