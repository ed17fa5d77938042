"""Finds the constants that slim's operators read faster in another layout.

The weight of a matrix product or a convolution is packed when the model is built, not when it is
loaded. aoti_driver.packing has the layouts, and artifacts/packed_weights.py is the step that writes
them.
"""

from __future__ import annotations

import contextlib
import dataclasses
import types
from collections.abc import Iterator, Sequence
from typing import Any

import torch

from aoti_driver.inductor import recurrent
from aoti_driver.inductor.block_parts import Operator
from aoti_driver.inductor.runs import Run
from aoti_driver.packing import convolution, matmul
from aoti_driver.torch_internals import patching

_CONVOLUTIONS = ("aten.convolution.default", "rules_aoti.convolution_epilogue.default")
_CHAIN = "rules_aoti.convolution_chain.default"
_PRODUCTS = (
    *("aten.mm.out", "aten.addmm.out", "aten.mm.default", "aten.addmm.default"),
    *("aten._addmm_activation.default", "aten.bmm.out", "aten.bmm.default"),
)


@dataclasses.dataclass(frozen=True)
class PackedSymbol:
    """A packed row of the constants table. only: whether no other use of the constant was found."""

    symbol: str
    kind: str
    options: dict[str, int]
    only: bool


@dataclasses.dataclass
class Blocks:
    """What is known of blocks that repeat (outline.py).

    weights: the places of the arguments that are constants, while a block is generated. packed:
    for the operators of blocks, the places of the arguments to pack.
    """

    weights: Sequence[int] = ()
    operators: dict[Any, Operator] = dataclasses.field(default_factory=dict)
    packed: dict[Operator, dict[int, PackedSymbol]] = dataclasses.field(default_factory=dict)

    def names(self, graph: Any) -> list[str]:
        return [graph.graph_input_names[i] for i in self.weights]

    def add(self, operator: Operator, packed: dict[int, PackedSymbol]) -> None:
        self.operators[operator.overload] = operator
        self.packed[operator] = packed

    def add_run(self, run: Run) -> None:
        """The arguments of a run: all of its calls have to read one in the same layout."""
        uses: dict[int, list[PackedSymbol | None]] = {}
        for call in run.calls:
            symbols = self.packed[call.block.operator]
            for i, place in enumerate(call.tensors):
                if isinstance(place, int):
                    uses.setdefault(place, []).append(symbols.get(i))
        packed = {
            place: dataclasses.replace(first, only=all(_alike(first, use) for use in of_place))
            for place, of_place in uses.items()
            if (first := next(filter(None, of_place), None)) is not None
        }
        self.add(run.operator, packed)


def find(graph: Any, blocks: Blocks) -> tuple[PackedSymbol, ...]:
    """The packed constants of Inductor's lowered ``graph``, in the constants table's order; then
    the packed arguments, if it is a block.
    """
    wanted: dict[str, list[tuple[str, dict[str, int]]]] = {}
    names = [*graph.constants, *blocks.names(graph)]
    reads: dict[str, int] = dict.fromkeys(names, 0)
    nested = False
    for operation in graph.operations:
        nested = nested or bool(_subgraphs(operation))
        for dependency in operation.get_read_writes().reads:
            if dependency.name in reads:
                reads[dependency.name] += 1
        for name, symbol in _passed(operation, blocks):
            wanted.setdefault(name, []).append((symbol.kind, symbol.options))
            reads[name] += not symbol.only
        for name, kind, options in _read_by(operation, blocks):
            wanted.setdefault(name, []).append((kind, options))
    for output in graph.graph_outputs:
        read = _constant_name(output, blocks)
        if read is not None and read in reads:
            reads[read] += 1
    return tuple(
        PackedSymbol(name, *uses[0], only=_same(uses) and reads[name] == len(uses) and not nested)
        for name in names
        if (uses := wanted.get(name))
    )


@contextlib.contextmanager
def weights_as_stored(blocks: Blocks) -> Iterator[None]:
    """Keeps Inductor from copying a convolution's weight into another layout in every call."""
    from torch._inductor import ir

    class _AsStored(ir.ExternKernel):
        @classmethod
        def require_channels_last(cls, x: Any) -> Any:
            return x if _constant_name(x, blocks) else ir.ExternKernel.require_channels_last(x)

        @classmethod
        def require_stride_order(cls, x: Any, order: Any, allow_padding: bool = False) -> Any:
            if _constant_name(x, blocks):
                return x
            return ir.ExternKernel.require_stride_order(x, order, allow_padding)

    own: Any = types.ModuleType(ir.__name__)
    own.__dict__.update(ir.__dict__)
    own.ExternKernel = _AsStored
    with patching.replaced({"torch._inductor.kernel.conv:ir": own}):
        yield


def _alike(first: PackedSymbol, use: PackedSymbol | None) -> bool:
    return use is not None and use.only and (use.kind, use.options) == (first.kind, first.options)


def _same(uses: Sequence[tuple[str, dict[str, int]]]) -> bool:
    return all(use == uses[0] for use in uses)


def _subgraphs(operation: Any) -> list[Any]:
    from torch._inductor import ir

    return [value for value in vars(operation).values() if isinstance(value, ir.Subgraph)]


def _operator(operation: Any) -> str:
    return str(getattr(operation, "op_overload", None) or "")


def _passed(operation: Any, blocks: Blocks) -> Iterator[tuple[str, PackedSymbol]]:
    """The constants that a block takes, and packs, as they are stored."""
    if (operator := blocks.operators.get(getattr(operation, "op_overload", None))) is None:
        return
    inputs = dict(zip(operator.positions(), operation.inputs, strict=False))
    for i, symbol in blocks.packed[operator].items():
        name, tensor = _constant(inputs[i], blocks)
        if tensor is not None and _is_as_stored(inputs[i], tensor):
            yield name, symbol


def _read_by(operation: Any, blocks: Blocks) -> Iterator[tuple[str, str, dict[str, int]]]:
    """The constants that are weights of an operator, with the layouts that it reads."""
    if (product := _product(operation, blocks)) is not None:
        yield product
    yield from _convolutions(operation, blocks)
    yield from _recurrent_layers(operation, blocks)


def _product(operation: Any, blocks: Blocks) -> tuple[str, str, dict[str, int]] | None:
    """The constant that is the right-hand matrix of a product, or the stack of such matrices of a
    batched one, or None.
    """
    if _operator(operation) not in _PRODUCTS:
        return None
    matrix = operation.inputs[-1]
    name, tensor = _constant(matrix, blocks)
    if tensor is None:
        return None
    kind = matmul.packable(tensor)
    if kind is None:
        return None
    layout = matrix.get_layout()
    # A constant that is expanded to a dynamic dim has sizes that are no numbers.
    size, stride = [*layout.size], [*layout.stride]
    if layout.offset != 0 or len(size) != tensor.dim():
        return None
    *stack, rows, columns = tensor.shape
    step = [rows * columns] * len(stack)
    if size == [*stack, columns, rows] and stride == [*step, 1, columns]:
        return name, kind, {}
    if size == [*stack, rows, columns] and stride == [*step, columns, 1]:
        return name, f"{kind}_rows", {}
    return None


def _convolutions(operation: Any, blocks: Blocks) -> Iterator[tuple[str, str, dict[str, int]]]:
    """The constants that are weights of convolutions."""
    arguments = operation.kwargs if _operator(operation) in (*_CONVOLUTIONS, _CHAIN) else {}
    if not arguments:
        return
    groups = [int(arguments["groups"])]
    if _operator(operation) == _CHAIN:
        groups = [1, *groups, 1][: arguments["stages"]]
    for weight, of_weight in zip(operation.inputs[1:], groups, strict=False):
        name, tensor = _constant(weight, blocks)
        if tensor is None or list(weight.get_size()) != list(tensor.shape):
            continue
        kind = convolution.kind_of(tensor, of_weight, bool(arguments.get("transposed")))
        if kind is not None:
            yield name, kind, {"groups": of_weight}


def _recurrent_layers(operation: Any, blocks: Blocks) -> Iterator[tuple[str, str, dict[str, int]]]:
    """The constants that are matrices of recurrent layers: biases have one dim, states three."""
    if getattr(operation, "op_overload", None) not in recurrent.TWINS:
        return
    for weight in operation.inputs:
        name, tensor = _constant(weight, blocks)
        if tensor is None or tensor.dim() != 2:
            continue
        kind = matmul.packable(tensor)
        whole = _is_as_stored(weight, tensor) and weight.get_layout().offset == 0
        if kind is not None and whole:
            yield name, kind, {}


def _is_as_stored(value: Any, tensor: torch.Tensor) -> bool:
    """Whether the value has the sizes and strides of the constant."""
    layout = value.get_layout()
    return [*layout.size, *layout.stride] == [*tensor.shape, *tensor.stride()]


def _constant(value: Any, blocks: Blocks) -> tuple[str, torch.Tensor | None]:
    """The constant that the value is a view of, if it is contiguous, and its name."""
    name = _constant_name(value, blocks)
    return ("", None) if name is None else (name, _stored(name))


def _stored(name: str) -> torch.Tensor | None:
    from torch._inductor.virtualized import V

    tensor: torch.Tensor | None = V.graph.constants.get(name)
    if tensor is None:
        given: Any = V.graph.example_inputs
        tensor = given[V.graph.graph_input_names.index(name)]
    return tensor if tensor is not None and tensor.is_contiguous() else None


def _constant_name(node: Any, blocks: Blocks) -> str | None:
    """The name of the constant that ``node`` is a view of."""
    from torch._inductor import ir
    from torch._inductor.virtualized import V

    while isinstance(node, (ir.MutableBox, ir.BaseView)):
        node = node.data
    if isinstance(node, ir.ConstantBuffer):
        return str(node.get_name())
    given = isinstance(node, ir.InputBuffer) and node.get_name() in blocks.names(V.graph)
    return str(node.get_name()) if given else None
