"""A convolution with what follows it, as one operator of the slim runtime.

`convolution_fusion.fuse` puts it into graphs. On libtorch, which has no such operator, the
generated code calls PyTorch's convolution and a kernel for the rest (convolution_helpers.py).
"""

from __future__ import annotations

import contextlib
import enum
import math
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from aoti_driver.inductor import concatenation, own_operators
from aoti_driver.torch_internals import patching


class Activation(enum.IntEnum):
    """The numbers are those of ConvActivation in runtime/slim/kernels/conv.h."""

    NONE = 0
    CLAMP = 1
    SILU = 2
    HARDSWISH = 3
    LEAKY_RELU = 4
    GELU = 5


def _reference(
    x: Tensor,
    weight: Tensor,
    scale: Tensor | None,
    shift: Tensor | None,
    residual: Tensor | None,
    stride: Sequence[int],
    before: Sequence[int],
    after: Sequence[int],
    dilation: Sequence[int],
    groups: int,
    activation: int,
    residual_last: bool,
    low: float,
    high: float,
    transposed: bool = False,
    narrow: bool = False,
) -> Tensor:
    """What the operator computes: activation(convolution * scale + shift + residual), with the
    residual added last or before the activation. It may have fewer channels: it is added to the
    first ones of the result. Of a line (one spatial dim), an image or a volume.
    before, after: the zeros around it, for each spatial dim; of a transposed convolution, the
    pixels that are left out, where `after` is less by what PyTorch calls `output_padding`.

    x and weight may be bfloat16, with the same zeros before and after: the sums and all else are
    float32. narrow: the result is rounded to bfloat16.
    """
    if x.dtype == torch.bfloat16:
        x, weight = x.float(), weight.float()
    padding, more = [*before], [0] * len(before)
    if transposed:
        more = [b - a for b, a in zip(before, after, strict=True)]
    elif padding != [*after]:
        around = zip(reversed(before), reversed(after), strict=True)
        x = torch.nn.functional.pad(x, [zeros for both in around for zeros in both])
        padding = [0] * len(padding)
    y: Tensor = torch.ops.aten.convolution.default(
        x, weight, None, stride, padding, dilation, transposed, more, groups
    )
    for values, operation in ((scale, torch.mul), (shift, torch.add)):
        if values is not None:
            y = operation(y, values.reshape(-1, *[1] * len(padding)))
    if residual is not None and (missing := y.shape[1] - residual.shape[1]) > 0:
        residual = torch.nn.functional.pad(residual, [0, 0] * len(padding) + [0, missing])
    if residual is not None and not residual_last:
        y = y + residual
    y = _activated(y, Activation(activation), low, high)
    if residual is not None and residual_last:
        y = y + residual
    return y.bfloat16() if narrow else y


def _activated(y: Tensor, activation: Activation, low: float, high: float) -> Tensor:
    if activation == Activation.CLAMP:
        return torch.clamp(y, low, high)
    if activation == Activation.SILU:
        return torch.nn.functional.silu(y)
    if activation == Activation.HARDSWISH:
        return torch.nn.functional.hardswish(y)
    if activation == Activation.LEAKY_RELU:
        return torch.nn.functional.leaky_relu(y, low)
    if activation == Activation.GELU:
        return torch.nn.functional.gelu(y)
    return y


OPERATOR = own_operators.declare(
    "convolution_epilogue(Tensor x, Tensor weight, Tensor? scale, Tensor? shift, Tensor? residual, "
    "int[] stride, int[] before, int[] after, int[] dilation, int groups, int activation, "
    "bool residual_last, float low, float high, bool transposed=False, "
    "bool narrow=False) -> Tensor",
    _reference,
)


def called_dtypes(x: Any) -> str:
    """All else that is read and returned is not the convolution's."""
    dtype = str(x.get_dtype()).removeprefix("torch.")
    return f"{dtype}->{dtype}"


@contextlib.contextmanager
def lowered() -> Iterator[None]:
    """Lets Inductor generate calls of the operator, on tensors whose channels are contiguous."""
    from torch._inductor import ir

    class ConvolutionEpilogue(ir.ExternKernelAlloc):
        called_dtypes: str | None = None

        def codegen(self, wrapper: Any) -> None:
            wrapper.writelines(_code(self))

        def should_allocate(self) -> bool:
            return concatenation.is_placed(self)

    def lower(x: Any, weight: Any, *others: Any) -> Any:
        *values, stride, before, after, dilation, groups = others[:8]
        activation, residual_last, low, high, *flags = others[8:]
        transposed, narrow = (*flags, False, False)[:2]
        scale, shift, residual = values
        weight.realize()
        inputs = [_image(x), ir.ExternKernel.realize_input(weight)]
        inputs += [ir.ExternKernel.realize_input(v) for v in (scale, shift) if v is not None]
        if residual is not None:
            inputs.append(channels_last(residual))
        node = ConvolutionEpilogue(
            concatenation.layout(x),
            inputs,
            (
                [value is not None for value in values],
                [*stride, *before, *after, *dilation],
                (activation, residual_last, low, high),
            ),
            {"groups": groups, "transposed": transposed, "narrow": narrow},
            op_overload=OPERATOR,
        )
        node.called_dtypes = called_dtypes(x)
        return ir.TensorBox.create(node)

    with patching.entries_kept("torch._inductor.lowering:lowerings", [OPERATOR]) as lowerings:
        lowerings[OPERATOR] = lower
        yield


# With no more channels than this, the operator copies the image anyhow, to put zeros around it.
_FEW_CHANNELS = 3


def _image(value: Any) -> Any:
    """Inductor's ``value`` as the operator's first input: with contiguous channels, unless a copy
    of the graph's input were needed for that which the operator makes itself.
    """
    from torch._inductor import ir

    if isinstance(value.data.data, ir.InputBuffer) and value.get_size()[1] in range(
        1, _FEW_CHANNELS + 1
    ):
        return ir.ExternKernel.realize_input(value)
    return channels_last(value)


# Of images with fewer channels, loops over them are too short for vectors.
MANY_CHANNELS = 16


def channels_last(value: Any) -> Any:
    """Inductor's ``value`` with contiguous channels."""
    from torch._inductor import ir

    value.realize()
    return ir.ExternKernel.require_stride_order(
        value, concatenation.stride_order(len(value.get_size()))
    )


def _code(node: Any) -> list[str]:
    given, geometry, (activation, residual_last, low, high) = node.constant_args
    x, weight, *rest = (value.codegen_reference() for value in node.inputs)
    left = iter(rest)
    tensors = [next(left) if is_given else "nullptr" for is_given in given]
    options = [
        str(int(activation)),
        "true" if residual_last else "false",
        float_literal(low),
        float_literal(high),
    ]
    numbers = ", ".join(str(int(n)) for n in geometry)
    flags = ["true" if node.kwargs[name] else "false" for name in ("transposed", "narrow")]
    kind = ", ".join([str(node.kwargs["groups"]), *flags])
    arguments = f"{x}, {weight}, {{{numbers}}}, {{{kind}}}, {{{', '.join([*tensors, *options])}}}"
    return [call(node, "Run", arguments)]


def call(node: Any, function: str, arguments: str, template: str = "") -> str:
    """The call of a function of convolution_helpers.py that computes the node."""
    name = node.get_name()
    if concatenation.is_placed(node):
        return f"aoti_convolution::{function}Into{template}({name}, {arguments});"
    return f"RAIIAtenTensorHandle {name} = aoti_convolution::{function}{template}({arguments});"


def float_literal(value: float) -> str:
    """In C++."""
    if math.isinf(value):
        sign = "-" if value < 0 else ""
        return f"{sign}std::numeric_limits<float>::infinity()"
    return f"static_cast<float>({float(value)!r})"
