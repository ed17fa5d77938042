"""A product of int8 with its scales, bias and activation, as one operator of the slim runtime.

`fuse` puts it into graphs in the place of `_int_mm` and what `precision = "int8"` has behind it
(export/int8_products.py). Inductor would write a loop for that, which reads and writes the result
once more, and compute the activation twice: for the largest number of a row, and to round it. On
libtorch, the generated code calls `_int_mm` and a kernel for the rest (int8_product_helpers.py).
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, fx

from aoti_driver.inductor import own_operators
from aoti_driver.program.graph_nodes import write_anew
from aoti_driver.torch_internals import patching

_ATEN: Any = torch.ops.aten

# The numbers are those of GemmActivation in runtime/slim/kernels/gemm.h.
_NONE = 0
_ACTIVATIONS = {
    _ATEN.relu.default: 1,
    _ATEN.relu_.default: 1,
    _ATEN.gelu.default: 2,
    _ATEN.gelu_.default: 2,
}


def _reference(
    numbers: Tensor,
    weight: Tensor,
    steps: Tensor,
    scales: Tensor,
    bias: Tensor | None,
    activation: int,
) -> Tensor:
    """What the operator computes. numbers[m, k] and weight[n, k] are int8; steps[m, 1], scales[n]
    and bias[n] are float32, as is the result[m, n].
    """
    y: Tensor = _ATEN._int_mm.default(numbers, weight.t()).float() * steps * scales
    if bias is not None:
        y = y + bias
    if activation == _NONE:
        return y
    return torch.relu(y) if activation == 1 else torch.nn.functional.gelu(y)


OPERATOR = own_operators.declare(
    "int8_product(Tensor numbers, Tensor weight, Tensor steps, Tensor scales, Tensor? bias, "
    "int activation) -> Tensor",
    _reference,
)


def fuse(module: fx.GraphModule) -> None:
    """Puts the operator into the graph. All other nodes have the values that they had."""
    graph = module.graph
    products = graph.find_nodes(op="call_function", target=_ATEN._int_mm.default)
    for product in products:
        _fuse(graph, product)
    write_anew(module, bool(products))


def _fuse(graph: fx.Graph, product: fx.Node) -> None:
    numbers, turned = product.args
    if not isinstance(turned, fx.Node) or turned.target is not _ATEN.t.default:
        return
    (weight,) = turned.args
    m, n = _value(product).shape
    floats = _only_reader(product, _ATEN._to_copy.default)
    if floats is None or dict(floats.kwargs) != {"dtype": torch.float32}:
        return
    stepped = _only_reader(floats, _ATEN.mul.Tensor)
    steps = _other(stepped, floats, [m, 1])
    if stepped is None or steps is None:
        return
    scaled = _only_reader(stepped, _ATEN.mul.Tensor)
    scales = _other(scaled, stepped, [n])
    if scaled is None or scales is None:
        return
    replaced = [turned, product, floats, stepped, scaled]
    added = _only_reader(scaled, _ATEN.add.Tensor)
    bias = _other(added, scaled, [n])
    if added is not None and bias is not None:
        replaced.append(added)
    last = replaced[-1]
    shaped = _only_reader(last, _ATEN.reshape.default)
    activation = next(iter(shaped.users)) if shaped is not None and len(shaped.users) == 1 else None
    kind = _ACTIVATIONS.get(activation.target, _NONE) if activation is not None else _NONE
    if activation is not None and (activation.args[1:] or _approximate(activation)):
        kind = _NONE
    with graph.inserting_before(last):
        fused = graph.call_function(OPERATOR, (numbers, weight, steps, scales, bias, kind))
    fused.meta = {**product.meta, "val": _value(last)}
    last.replace_all_uses_with(fused)
    if kind != _NONE and activation is not None and shaped is not None:
        activation.replace_all_uses_with(shaped)
        replaced.append(activation)
    for node in reversed(replaced):
        if not node.users:
            graph.erase_node(node)


def _approximate(activation: fx.Node) -> bool:
    return bool(activation.kwargs.get("approximate", "none") != "none")


def _value(node: fx.Node) -> Tensor:
    value: Tensor = node.meta["val"]
    return value


def _only_reader(node: fx.Node, target: Any) -> fx.Node | None:
    """The only node that reads ``node``, if it calls ``target``."""
    if len(node.users) != 1:
        return None
    (user,) = node.users
    return (
        user if user.target is target and not (user.kwargs and target is _ATEN.add.Tensor) else None
    )


def _other(node: fx.Node | None, one: fx.Node, sizes: Sequence[Any]) -> fx.Node | None:
    """The other operand of a sum or product, if it is a float32 tensor of these sizes."""
    if node is None or len(node.args) != 2:
        return None
    (other,) = [arg for arg in node.args if arg is not one] or [None]
    value = other.meta.get("val") if isinstance(other, fx.Node) else None
    if not isinstance(other, fx.Node) or not isinstance(value, Tensor):
        return None
    return other if value.dtype == torch.float32 and [*value.shape] == [*sizes] else None


@contextlib.contextmanager
def lowered() -> Iterator[None]:
    """Lets Inductor generate calls of the operator."""
    from torch._inductor import ir

    class Int8Product(ir.ExternKernelAlloc):
        # What it calls on libtorch.
        called_dtypes = "int8->int32"

        def codegen(self, wrapper: Any) -> None:
            wrapper.writelines(_code(self))

    def lower(numbers: Any, weight: Any, steps: Any, scales: Any, bias: Any, kind: int) -> Any:
        given = [numbers, weight, steps, scales, *([] if bias is None else [bias])]
        for value in given:
            value.realize()
        inputs = [ir.ExternKernel.realize_input(value) for value in given]
        size = [numbers.get_size()[0], weight.get_size()[0]]
        layout = ir.FixedLayout(numbers.get_device(), torch.float32, size)
        node = Int8Product(layout, inputs, (kind,), op_overload=OPERATOR)
        return ir.TensorBox.create(node)

    with patching.entries_kept("torch._inductor.lowering:lowerings", [OPERATOR]) as lowerings:
        lowerings[OPERATOR] = lower
        yield


def _code(node: Any) -> list[str]:
    tensors = [value.codegen_reference() for value in node.inputs]
    if len(tensors) == 4:
        tensors.append("nullptr")
    arguments = ", ".join([*tensors, str(node.constant_args[0])])
    return [f"RAIIAtenTensorHandle {node.get_name()} = aoti_int8::Product({arguments});"]
