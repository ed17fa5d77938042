"""Convolutions that Inductor has no kernel for: of one dim, dilated, in groups, transposed, and of
float64 and integers. They become the kernel of convolution_template.py.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch

from aoti_driver.cuda import convolution_template, operators
from aoti_driver.torch_internals import patching

_aten: Any = torch.ops.aten
# What Triton computes with matrix units, or as if there were some.
OF_UNITS = (torch.float32, torch.bfloat16, torch.float16)
# What others are added in.
_WIDE = {torch.float64: "tl.float64", torch.int64: "tl.int64"}

# The name that templates.py knows them by.
TRANSPOSED = "convolution_transposed"


@contextlib.contextmanager
def in_kernels() -> Iterator[None]:
    operator = operators.find("aten.convolution.default")
    with patching.entries_kept("torch._inductor.lowering:lowerings", [operator]) as lowerings:
        lowerings[operator] = _lowered(lowerings[operator])
        yield


def _lowered(lower: Callable[..., Any]) -> Callable[..., Any]:
    def lowered(
        x: Any,
        weight: Any,
        bias: Any,
        stride: Sequence[int],
        padding: Sequence[int],
        dilation: Sequence[int],
        transposed: bool,
        output_padding: Sequence[int],
        groups: int,
    ) -> Any:
        dims = len(weight.get_size()) - 2
        steps, pads, spreads, further = (
            _of_dims(values, dims) for values in (stride, padding, dilation, output_padding)
        )
        whole = groups == 1 and not transposed and all(spread == 1 for spread in spreads)
        if dims > 1 and x.get_dtype() in OF_UNITS and whole:
            return lower(
                x, weight, bias, stride, padding, dilation, transposed, output_padding, groups
            )
        return _convolution(x, weight, bias, steps, pads, spreads, further, transposed, groups)

    return lowered


def _of_dims(values: Sequence[int], dims: int) -> tuple[int, ...]:
    """One for each dim, where there may be one for all."""
    return tuple(values) * dims if len(values) == 1 else tuple(values)


def _convolution(
    x: Any,
    weight: Any,
    bias: Any,
    stride: tuple[int, ...],
    padding: tuple[int, ...],
    dilation: tuple[int, ...],
    output_padding: tuple[int, ...],
    transposed: bool,
    groups: int,
) -> Any:
    from torch._inductor import ir, lowering, select_algorithm
    from torch._inductor.kernel import conv
    from torch._inductor.virtualized import V

    table = lowering.lowerings
    sizes = V.graph.sizevars.guard_int_seq(weight.get_size())
    if len(x.get_size()) == len(sizes) - 1:
        x = table[_aten.unsqueeze](x, 0)
        result = _convolution(
            x, weight, bias, stride, padding, dilation, output_padding, transposed, groups
        )
        return table[_aten.squeeze](result, 0)
    x, weight = (ir.ExternKernel.realize_input(node) for node in (x, weight))
    layout = conv.conv_layout(
        x, weight, None, stride, padding, dilation, transposed, output_padding, groups
    )
    kernel = sizes[2:]
    units = x.get_dtype() in OF_UNITS
    choices: list[Any] = []
    convolution_template.template(len(kernel), transposed).maybe_append_choice(
        choices,
        input_nodes=(x, weight),
        layout=layout,
        num_stages=2,
        num_warps=4,
        # templates.py has others instead.
        BLOCK_M=16,
        BLOCK_N=16,
        BLOCK_K=16,
        MATRIX_UNITS=units,
        ACC_TYPE="tl.float32" if units else _WIDE.get(x.get_dtype(), "tl.int32"),
        **convolution_template.constants(kernel, stride, padding, dilation, groups),
    )
    name = TRANSPOSED if transposed else "convolution"
    select: Any = select_algorithm.autotune_select_algorithm
    # What made it is Inductor's second result.
    result, *_ = select(name, choices, [x, weight], layout)
    if bias is None:
        return result
    ones = [1] * len(kernel)
    return table[_aten.add](result, table[_aten.view](bias, [result.get_size()[1], *ones]))
