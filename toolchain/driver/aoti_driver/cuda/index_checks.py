"""Indices out of range in GPU kernels: reported to the runtime after the call.

Inductor writes device asserts, after which a process can't use the device any more. Here the kernel
reads or writes the nearest element instead, and stores the index in a word of the runtime, which
makes an error of the call.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import sympy
import torch

from aoti_driver.torch_internals import patching

# The word's name in the wrapper, and its address's in a kernel. Inductor makes no tensor for a name
# that begins so.
STATUS = "workspace_index_status"
POINTER = "index_status_ptr"
_COMMON = "torch._inductor.codegen.common"
_WRAPPER = "torch._inductor.codegen.wrapper:PythonWrapperCodegen"


@contextlib.contextmanager
def reported() -> Iterator[None]:
    """Makes Inductor's Triton kernels report; they get the word's address as a parameter."""
    from torch._inductor.codegen.triton import texpr
    from torch._inductor.utils import sympy_index_symbol

    place = f"{_COMMON}:CSEProxy.indirect_indexing"
    wrap = patching.original(place)
    allocate = patching.original(f"{_WRAPPER}.generate_workspace_allocation")
    free = patching.original(f"{_WRAPPER}.generate_workspace_deallocation")

    def indexing(proxy: Any, var: Any, size: Any, check: bool = True, wrap_neg: bool = True) -> Any:
        symbol = wrap(proxy, var, size, False, wrap_neg)
        if not check:
            return symbol
        kernel = proxy.kernel
        index = kernel.cse.varname_map[str(symbol)]
        bounds = index.bounds
        known = isinstance(size, (int, sympy.Integer))
        if known and bounds.lower >= 0 and bounds.upper < size:
            return symbol
        text = texpr(kernel.rename_indexing(sympy.sympify(size)))
        options = kernel.indexing(symbol, block_ptr=False, tma_compatibility_checker=None)
        bad = f"(({index} < 0) | ({index} >= {text}))"
        if options.has_mask():
            bad = f"{bad} & {options.mask_str}"
        _add_parameter(kernel)
        # A negative index was counted from the end before.
        given = str(index)
        if wrap_neg and var.bounds.lower < 0:
            given = f"tl.where({index} < 0, {index} - {text}, {index})"
        saturated = f"tl.minimum(tl.maximum({given}, -2147483648), 2147483647)"
        word = f"({saturated}.to(tl.int64) << 32) | ({text} + 1)"
        store = f"tl.store({POINTER} + {index} * 0, {word}, {bad})"
        kernel.cse.generate(kernel.compute, store, assignment=False, dtype=torch.int32)
        clamped = kernel.cse.generate(
            kernel.compute,
            f"tl.maximum(tl.minimum({index}, {text} - 1), 0)",
            dtype=index.dtype,
            shape=index.shape,
        )
        clamped.mask_vars = index.mask_vars.copy()
        return sympy_index_symbol(str(clamped))

    def unless_status(write: Any) -> Any:
        return lambda wrapper, arg: None if arg.outer_name == STATUS else write(wrapper, arg)

    with patching.replaced(
        {
            place: indexing,
            f"{_WRAPPER}.generate_workspace_allocation": unless_status(allocate),
            f"{_WRAPPER}.generate_workspace_deallocation": unless_status(free),
        }
    ):
        yield


def _add_parameter(kernel: Any) -> None:
    from torch._inductor.codegen.common import WorkspaceArg, WorkspaceZeroMode
    from torch._inductor.virtualized import V

    if any(arg.outer_name == STATUS for arg in kernel.args.workspace_args):
        return
    kernel.args.workspace_args.append(
        WorkspaceArg(
            count=sympy.Integer(1),
            zero_mode=WorkspaceZeroMode.UNINITIALIZED,
            device=V.graph.get_current_device_or_throw(),
            outer_name=STATUS,
            inner_name=POINTER,
            dtype=torch.int64,
        )
    )
