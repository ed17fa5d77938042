"""A convolution of pixels, a depthwise one of its result, and perhaps one of pixels of that, as one
operator of the slim runtime.

`convolution_chain_fusion.fuse` puts it into graphs. The runtime computes a few rows through all
stages, so that the first result, which has the most channels, is never written as a whole. On
libtorch, the generated code calls the stages one after the other (convolution_helpers.py).
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from aoti_driver.inductor import concatenation, convolution_epilogue, own_operators
from aoti_driver.inductor.convolution_epilogue import channels_last
from aoti_driver.torch_internals import patching


def _reference(
    x: Tensor,
    weights: Sequence[Tensor],
    scales: Sequence[Tensor | None],
    shifts: Sequence[Tensor | None],
    residual: Tensor | None,
    stride: Sequence[int],
    before: Sequence[int],
    after: Sequence[int],
    dilation: Sequence[int],
    groups: int,
    activations: Sequence[int],
    residual_last: bool,
    lows: Sequence[float],
    highs: Sequence[float],
    narrow: bool = False,
) -> Tensor:
    """What the operator computes: convolution_epilogue's operator for each stage. The geometry and
    the groups are those of the second stage; the residual is added by the last one.

    narrow: the last result is rounded to bfloat16. One before a stage whose weight is bfloat16 is,
    too.
    """
    of_pixels = ([1, 1], [0, 0], [0, 0], [1, 1])
    narrows = _narrows([weight.dtype for weight in weights], narrow)
    for i, weight in enumerate(weights):
        filtered = i == 1
        last = i + 1 == len(weights)
        geometry = (stride, before, after, dilation) if filtered else of_pixels
        x = convolution_epilogue.OPERATOR(
            *(x, weight, scales[i], shifts[i], residual if last else None),
            *(*geometry, groups if filtered else 1, activations[i], residual_last and last),
            *(lows[i], highs[i], False, narrows[i]),
        )
    return x


def _narrows(weights: Sequence[torch.dtype], narrow: bool) -> list[bool]:
    """Whether each stage's result is rounded. weights: their dtypes."""
    return [*(dtype == torch.bfloat16 for dtype in weights[1:]), narrow]


OPERATOR = own_operators.declare(
    "convolution_chain(Tensor x, Tensor[] weights, Tensor?[] scales, Tensor?[] shifts, "
    "Tensor? residual, int[] stride, int[] before, int[] after, int[] dilation, int groups, "
    "int[] activations, bool residual_last, float[] lows, float[] highs, "
    "bool narrow=False) -> Tensor",
    _reference,
)


@contextlib.contextmanager
def lowered() -> Iterator[None]:
    """Lets Inductor generate calls of the operator, on images whose channels are contiguous."""
    from torch._inductor import ir

    class ConvolutionChain(ir.ExternKernelAlloc):
        called_dtypes: str | None = None

        def codegen(self, wrapper: Any) -> None:
            wrapper.writelines(_code(self))

        def should_allocate(self) -> bool:
            return concatenation.is_placed(self)

    def lower(x: Any, weights: Any, scales: Any, shifts: Any, residual: Any, *others: Any) -> Any:
        stride, before, after, dilation, groups, activations = others[:6]
        residual_last, lows, highs, *flags = others[6:]
        narrows = _narrows([weight.get_dtype() for weight in weights], *(flags or [False]))
        for weight in weights:
            weight.realize()
        values = [*scales, *shifts]
        inputs = [channels_last(x)]
        inputs += [ir.ExternKernel.realize_input(weight) for weight in weights]
        inputs += [ir.ExternKernel.realize_input(v) for v in values if v is not None]
        if residual is not None:
            inputs.append(channels_last(residual))
        node = ConvolutionChain(
            concatenation.layout(x),
            inputs,
            (
                [value is not None for value in values],
                [*stride, *before, *after, *dilation],
                (residual is not None, activations, residual_last, lows, highs, narrows),
            ),
            {"groups": groups, "stages": len(weights)},
            op_overload=OPERATOR,
        )
        node.called_dtypes = convolution_epilogue.called_dtypes(x)
        return ir.TensorBox.create(node)

    with patching.entries_kept("torch._inductor.lowering:lowerings", [OPERATOR]) as lowerings:
        lowerings[OPERATOR] = lower
        yield


def _code(node: Any) -> list[str]:
    given, geometry, (has_residual, activations, *numbers) = node.constant_args
    residual_last, lows, highs, narrows = numbers
    count = node.kwargs["stages"]
    x, *rest = (value.codegen_reference() for value in node.inputs)
    left = iter(rest)
    weights = [next(left) for _ in range(count)]
    values = [next(left) if is_given else "nullptr" for is_given in given]
    residual = next(left) if has_residual else "nullptr"
    number = convolution_epilogue.float_literal
    stages = []
    for i in range(count):
        last = i + 1 == count
        options = [
            *(values[i], values[count + i], residual if last else "nullptr"),
            str(int(activations[i])),
            "true" if residual_last and last else "false",
            *(number(lows[i]), number(highs[i])),
        ]
        rounded = "true" if narrows[i] else "false"
        stages.append(f"{{{weights[i]}, {{{', '.join(options)}}}, {rounded}}}")
    numbers = ", ".join(str(int(n)) for n in geometry)
    arguments = f"{x}, {{{numbers}}}, {node.kwargs['groups']}, {{{{{', '.join(stages)}}}}}"
    return [convolution_epilogue.call(node, "RunChain", arguments, f"<{count}>")]
