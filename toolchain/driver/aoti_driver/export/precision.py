"""The ``precision`` attribute: matrices of weights, and the products with them, in a smaller type.

int8_products.py has "int8". With "bfloat16", every float32 parameter of two dims is stored as
bfloat16, whether this program multiplies by it or not, so that all methods of a model store the
same. A product with one takes its other operand and its bias rounded to bfloat16; the sums are
float32, rounded once, and what follows is float32 again. Weights of convolutions that
narrow_convolutions.py chooses are stored and multiplied in the same way. Attention between what
the program computes takes queries, keys and values rounded to bfloat16. All else computes in
float32 as before, and widens a matrix that it reads.
"""

from __future__ import annotations

import gc
from typing import Any

import torch
from torch import fx
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind

from aoti_driver.export import int8_products, narrow_convolutions, quantized_products, roundings
from aoti_driver.program.graph_nodes import value_of_call
from aoti_driver.program.signature import rename_results, replace_node, written_tensors
from aoti_driver.program.storage import names_by_memory

FLOAT32 = "float32"
BFLOAT16 = "bfloat16"
INT8 = "int8"

_aten = torch.ops.aten

# Products -> the places of what is multiplied, and of what is added to the product.
_PRODUCTS: dict[Any, tuple[tuple[int, int], int | None]] = {
    _aten.linear.default: ((0, 1), 2),
    _aten.matmul.default: ((0, 1), None),
    _aten.mm.default: ((0, 1), None),
    _aten.addmm.default: ((1, 2), 0),
}
# Through these a product still reads the stored matrix.
_VIEWS = (
    _aten.t.default,
    _aten.numpy_T.default,
    _aten.transpose.int,
    _aten.permute.default,
    _aten.detach.default,
    _aten.alias.default,
)
_LOOKUP = _aten.embedding.default
_ATTENTION = _aten.scaled_dot_product_attention.default
# Operators of these names give numbers of their first operand in another order.
_REORDERED = {
    "alias",
    "chunk",
    "clone",
    "contiguous",
    "detach",
    "expand",
    "flatten",
    "getitem",
    "narrow",
    "permute",
    "reshape",
    "select",
    "slice",
    "split",
    "split_with_sizes",
    "squeeze",
    "t",
    "transpose",
    "unbind",
    "unflatten",
    "unsafe_view",
    "unsqueeze",
    "view",
}
# These do so with several operands. What they make of an input or a buffer is as large as a cache
# may be.
_MOVES = _REORDERED | {
    "cat",
    "copy",
    "index",
    "index_copy",
    "index_put",
    "index_select",
    "repeat",
    "repeat_interleave",
    "scatter",
    "select_scatter",
    "slice_scatter",
    "stack",
}


def lower(ep: ExportedProgram, precision: str) -> None:
    """Changes the program in place; does nothing for float32."""
    if precision == FLOAT32:
        return
    if precision == INT8:
        return int8_products.lower(ep)
    kernels = narrow_convolutions.weights(ep)
    narrowed = _narrow_tensors(ep, set(kernels))
    specs = {spec.arg.name: spec.target for spec in ep.graph_signature.input_specs}
    matrices: set[fx.Node] = set()
    for node in ep.graph.find_nodes(op="placeholder"):
        if specs.get(node.name) in narrowed:
            _narrow_views(node, matrices)
    convolutions = {
        user for name, node in kernels.items() if name in narrowed for user in node.users
    }
    scales = quantized_products.narrow_scales(ep)
    widened: dict[fx.Node, fx.Node] = {}
    reordered: dict[fx.Node, fx.Node] = {}
    for node in list(ep.graph.nodes):
        if node in matrices:
            continue
        if _is_product(node, matrices):
            replace_node(ep, node, _product(node, matrices, reordered))
        elif node in convolutions:
            replace_node(ep, node, _convolution(node, reordered))
        elif _is_quantized_product(node, scales):
            replace_node(ep, node, _quantized_product(node, reordered))
        elif node.target is _LOOKUP and node.args[0] in matrices:
            replace_node(ep, node, _lookup(node))
        elif node.target is _ATTENTION and _is_narrow_attention(node):
            replace_node(ep, node, _attention(node, reordered))
        else:
            _widen_operands(ep, node, matrices, widened)
    roundings.move_up(ep)
    ep.graph.eliminate_dead_code()
    ep.graph.lint()
    ep.graph_module.recompile()


def _narrow_tensors(ep: ExportedProgram, kernels: set[str]) -> set[str]:
    """Converts the matrices and those of the convolutions' weights that share no memory; returns
    their names. Matrices that share memory still do so after it.
    """
    written = written_tensors(ep)
    parameters = {
        spec.target for spec in ep.graph_signature.input_specs if spec.kind is InputKind.PARAMETER
    } - written
    tensors = {**ep.state_dict, **ep.constants}
    gc.collect()  # modules of the export are parts of cycles, and have the same matrices
    narrowed: set[str] = set()
    for names in names_by_memory(ep):
        # Nothing here keeps a matrix that has been converted, so that only one is in memory twice.
        members = [tensors.pop(name) for name in names]
        is_kernel = len(names) == 1 and names[0] in kernels
        if not all(t.dtype == torch.float32 and (t.dim() == 2 or is_kernel) for t in members):
            continue
        if not any(name in parameters for name in names) or not written.isdisjoint(names):
            continue
        flat = (
            members[0].detach().as_strided((members[0].untyped_storage().nbytes() // 4,), (1,), 0)
        )
        narrow = flat.to(torch.bfloat16)
        for name, tensor in zip(names, members):
            view = narrow.as_strided(tensor.shape, tensor.stride(), tensor.storage_offset())
            if isinstance(tensor, torch.nn.Parameter):
                view = torch.nn.Parameter(view, requires_grad=tensor.requires_grad)
            (ep.state_dict if name in ep.state_dict else ep.constants)[name] = view
        narrowed.update(names)
    return narrowed


def _narrow_views(node: fx.Node, matrices: set[fx.Node]) -> None:
    node.meta = {**node.meta, "val": node.meta["val"].to(torch.bfloat16)}
    matrices.add(node)
    for user in node.users:
        if user.target in _VIEWS:
            _narrow_views(user, matrices)


def _is_product(node: fx.Node, matrices: set[fx.Node]) -> bool:
    if node.target not in _PRODUCTS or node.kwargs:  # alpha and beta of addmm
        return False
    places, _ = _PRODUCTS[node.target]
    operands = [node.args[place] for place in places]
    if not any(operand in matrices for operand in operands):
        return False
    return all(
        operand in matrices
        or (isinstance(operand, fx.Node) and operand.meta["val"].dtype == torch.float32)
        for operand in operands
    )


def _product(node: fx.Node, matrices: set[fx.Node], reordered: dict[fx.Node, fx.Node]) -> fx.Node:
    places, added = _PRODUCTS[node.target]
    value = node.meta["val"]
    operands = []
    for place in places:
        operand = node.args[place]
        assert isinstance(operand, fx.Node)
        operands.append(operand if operand in matrices else _narrowed(operand, node, reordered))
    addend = node.args[added] if added is not None and len(node.args) > added else None
    is_bias = isinstance(addend, fx.Node) and addend.meta["val"].dim() == 1
    target = node.target
    if is_bias:
        assert isinstance(addend, fx.Node) and added is not None
        operands.insert(added, _narrowed(addend, node, reordered))
    elif target is _aten.addmm.default:
        target = _aten.mm.default
    product = _call(node, target, operands, value.to(torch.bfloat16))
    wide = _cast(product, torch.float32, node, node.meta)
    if addend is None or is_bias:
        return wide
    return _call(node, _aten.add.Tensor, [wide, addend], value)


def _convolution(node: fx.Node, reordered: dict[fx.Node, fx.Node]) -> fx.Node:
    x, weight, *rest = node.args
    assert isinstance(x, fx.Node)
    bias = [_narrowed(b, node, reordered) if isinstance(b, fx.Node) else b for b in rest[:1]]
    operands = [_narrowed(x, node, reordered), weight, *bias, *rest[1:]]
    result = _call(node, node.target, operands, node.meta["val"].to(torch.bfloat16))
    return _cast(result, torch.float32, node, node.meta)


def _is_quantized_product(node: fx.Node, scales: set[fx.Node]) -> bool:
    place = quantized_products.SCALES_AT.get(node.target)
    return place is not None and node.args[place] in scales


def _quantized_product(node: fx.Node, reordered: dict[fx.Node, fx.Node]) -> fx.Node:
    operand = node.args[0]
    assert isinstance(operand, fx.Node)
    operands = [_narrowed(operand, node, reordered), *node.args[1:]]
    product = _call(node, node.target, operands, node.meta["val"].to(torch.bfloat16))
    return _cast(product, torch.float32, node, node.meta)


def _lookup(node: fx.Node) -> fx.Node:
    rows = _call(node, _LOOKUP, node.args, node.meta["val"].to(torch.bfloat16))
    return _cast(rows, torch.float32, node, node.meta)


def _is_narrow_attention(node: fx.Node) -> bool:
    """Whether the program computes the keys and values: rounding a cache in each call would cost
    more than the products.
    """
    operands = node.args[:3]
    return all(
        isinstance(operand, fx.Node) and operand.meta["val"].dtype == torch.float32
        for operand in operands
    ) and not any(_is_stored(operand) for operand in operands[1:])


def _is_stored(node: Any) -> bool:
    """Whether its numbers are those of an input or a buffer, in part at least."""
    if not isinstance(node, fx.Node) or not isinstance(node.meta.get("val"), torch.Tensor | list):
        return False
    if node.op != "call_function":
        return True
    return _name(node) in _MOVES and any(_is_stored(operand) for operand in node.all_input_nodes)


def _name(node: fx.Node) -> str:
    """Of an operator, without overload, and without the mark of one that writes to its operand."""
    schema = getattr(node.target, "_schema", None)
    name = getattr(node.target, "__name__", "") if schema is None else schema.name
    return str(name).removeprefix("aten::").strip("_")


def _narrowed(operand: fx.Node, before: fx.Node, reordered: dict[fx.Node, fx.Node]) -> fx.Node:
    """The operand in bfloat16. One that was in bfloat16 is taken as it was, in the same order.

    reordered: nodes in float32, and the same in bfloat16; is added to.
    """
    original = _before_widening(operand, reordered)
    return _cast(operand, torch.bfloat16, before, operand.meta) if original is None else original


def _before_widening(node: Any, reordered: dict[fx.Node, fx.Node]) -> fx.Node | None:
    """The node with what it reorders in bfloat16; None if that is not what was widened to it."""
    if not isinstance(node, fx.Node) or node.op != "call_function":
        return None
    if node.target is _aten._to_copy.default and node.kwargs == {"dtype": torch.float32}:
        source = node.args[0]
        assert isinstance(source, fx.Node)
        return source if source.meta["val"].dtype == torch.bfloat16 else None
    if node in reordered:
        return reordered[node]
    if _name(node) not in _REORDERED or node.kwargs:
        return None
    source = _before_widening(node.args[0], reordered)
    if source is None:
        return None
    arguments = (source, *node.args[1:])
    value = value_of_call(node.target, arguments)
    reordered[node] = _call(node, node.target, arguments, value)
    return reordered[node]


def _attention(node: fx.Node, reordered: dict[fx.Node, fx.Node]) -> fx.Node:
    operands = [operand for operand in node.args[:3] if isinstance(operand, fx.Node)]
    narrow = [_narrowed(operand, node, reordered) for operand in operands]
    value = node.meta["val"]
    attended = _call(node, _ATTENTION, [*narrow, *node.args[3:]], value.to(torch.bfloat16))
    attended.kwargs = node.kwargs
    return _cast(attended, torch.float32, node, node.meta)


def _widen_operands(
    ep: ExportedProgram,
    node: fx.Node,
    matrices: set[fx.Node],
    widened: dict[fx.Node, fx.Node],
) -> None:
    for operand in node.all_input_nodes:
        if operand not in matrices:
            continue
        if operand not in widened:
            widened[operand] = _cast(operand, torch.float32, node, operand.meta)
        node.replace_input_with(operand, widened[operand])
        if node.op == "output":
            rename_results(ep, operand, widened[operand])


def _cast(operand: fx.Node, dtype: torch.dtype, before: fx.Node, meta: dict[str, Any]) -> fx.Node:
    value = operand.meta["val"].to(dtype)
    with before.graph.inserting_before(before):
        cast = before.graph.call_function(_aten._to_copy.default, (operand,), {"dtype": dtype})
    cast.meta = {**meta, "val": value}
    return cast


def _call(before: fx.Node, target: Any, args: Any, value: Any) -> fx.Node:
    with before.graph.inserting_before(before):
        call = before.graph.call_function(target, tuple(args))
    call.meta = {**before.meta, "val": value}
    return call
