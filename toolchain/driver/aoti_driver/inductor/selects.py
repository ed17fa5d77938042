"""Checks indices that depend on data and select a part of a tensor: ``x[i]`` of a scalar ``i``.

Inductor (torch 2.13) reads memory behind the tensor for an index that is too large.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch
from torch.fx.experimental.symbolic_shapes import has_free_unbacked_symbols

from aoti_driver.torch_internals import patching

_CODE = "torch._inductor.codegen.cpp_wrapper_cpu:CppWrapperCpu.codegen_dynamic_select_index"
_OPERATOR: Any = torch.ops.aten.select


@contextlib.contextmanager
def checked() -> Iterator[None]:
    """The generated code needs runtime/core/index_error.h."""
    from torch._inductor import ir, lowering
    from torch._inductor.virtualized import V

    overload = _OPERATOR.int
    codegen_index = patching.original(_CODE)
    lower: Any = lowering.lowerings[overload]

    def select(x: Any, dim: int, index: Any) -> Any:
        if not has_free_unbacked_symbols(index) or _binds_symbol(V.graph.current_node):
            return lower(x, dim, index)
        # torch knows the index's sign, so Inductor would calculate the place without this node,
        # which is where the index is checked.
        x.realize()
        layout, size, stride = x.get_layout(), [*x.get_size()], [*x.get_stride()]
        dim = dim % len(size)
        shapes = V.graph.sizevars.shape_env
        with shapes.ignore_fresh_unbacked_symbols():
            place = shapes.create_unbacked_symint().node.expr
        node: Any = ir.DynamicSelectStorageOffset(
            place, index, layout.offset, stride.pop(dim), size.pop(dim), clamp=False
        )
        node.name = V.graph.register_buffer(node)
        V.graph.register_operation(node)
        return lowering.as_strided(
            x, size, stride, place, storage_offset_relative_to_input_storage=False
        )

    def code(wrapper: Any, node: Any, clamp: bool) -> None:
        codegen_index(wrapper, node, clamp)
        if not clamp:
            index = f"{node.unbacked_offset_symbol}_index"
            size = wrapper.val_to_arg_str_for_prim_type(node.size, int)
            bad = f"{index} < 0 || {index} >= {size}"
            error = f"::aoti::kernel::IndexError({index}, {size}, true)"
            wrapper.writeline(f"if ({bad}) [[unlikely]] {error};")

    with (
        patching.entries_kept("torch._inductor.lowering:lowerings", [overload]) as lowerings,
        patching.replaced({_CODE: code}),
    ):
        lowerings[overload] = select
        yield


def _binds_symbol(node: Any) -> bool:
    return bool(node.meta.get("unbacked_bindings"))
