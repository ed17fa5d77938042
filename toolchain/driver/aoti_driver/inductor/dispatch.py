"""Calls operators without a C function by name, through PyTorch's dispatcher.

Inductor passes these to a "proxy executor", which only torch's package loader has. Here the
generated code calls the dispatcher directly, through a function of torch's C interface that takes
the arguments as an array of 64-bit values. Operators whose arguments do not fit are refused with
the reason.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import sympy
import torch
from torch import Argument

from aoti_driver.inductor import block_calls, recurrent
from aoti_driver.inductor.outline import Block
from aoti_driver.inductor.runs import Run
from aoti_driver.program import operators
from aoti_driver.torch_internals import patching

_NUMBERS = (bool, int, float, complex)
_IN_PYTHON = re.compile(r"registered at .*\.py:\d+")


# Operators that exist only in Python, written as others with the same results (those of prims for
# complex tensors; Inductor writes kernels for real ones).
_TWINS: dict[Any, Callable[..., tuple[Any, list[Any]]]] = {
    torch.ops.prims.convert_element_type.default: lambda x, dtype: (
        torch.ops.aten._to_copy.default,
        [x, dtype, None, None, None, False, None],
    ),
    torch.ops.prims.rev.default: lambda x, dims: (torch.ops.aten.flip.default, [x, dims]),
    **recurrent.TWINS,
}


class RefusedError(Exception):
    """The reason why compiled code can't call an operator through the dispatcher."""


@contextlib.contextmanager
def direct_calls(blocks: Mapping[Any, Block | Run]) -> Iterator[dict[str, str]]:
    """Makes Inductor generate these calls; yields the operators that it can't call, with
    reasons. The operators of blocks are functions of the generated code.
    """
    refused: dict[str, str] = {}

    def arguments(node: Any) -> list[Any]:
        """The operator's arguments in the schema's order."""
        args, kwargs = node.unflatten_args(node.inputs, node.constant_args)
        if not isinstance(node.op_overload, torch._ops.OpOverload):
            return list(args)
        args = node.fill_non_provided_args(args, kwargs)
        names = node.ordered_kwargs_for_cpp_kernel
        return [*args, *(node.get_kwargs_value(name, **kwargs) for name in names)]

    def generate(
        wrapper: Any, buffer: str, _kernel: str, _args: Any, op: Any, raw: Any, outputs: Any
    ) -> None:
        if op in blocks:
            wrapper.writelines(block_calls.lines(wrapper, blocks[op], buffer, raw, outputs))
            return
        try:
            wrapper.writelines(_call(wrapper, op, raw, outputs))
        except RefusedError as e:
            refused[str(op.name() if callable(getattr(op, "name", None)) else op)] = str(e)

    with patching.replaced(
        {
            "torch._inductor.ir:FallbackKernel.export_extern_kernel_node": arguments,
            "torch._inductor.codegen.cpp_wrapper_cpu:"
            "CppWrapperCpu.generate_fallback_kernel_with_runtime_lookup": generate,
            "torch._library._out_variant:to_out_variant": lambda _: None,
            "torch._library._out_variant:lookup_manual_out_variant": lambda _: None,
        }
    ):
        yield refused


def _call(wrapper: Any, op: Any, raw: Sequence[Any], outputs: Sequence[Any]) -> list[str]:
    if not isinstance(op, torch._ops.OpOverload):
        raise RefusedError("it is not an operator of the dispatcher")
    if op in _TWINS:
        op, raw = _TWINS[op](*raw)
    if not operators.is_declared(op) and _python_only(op):
        if op.namespace in ("aten", "prims"):
            raise RefusedError("PyTorch has it in Python only, which compiled code doesn't have")
        raise RefusedError(
            "it is registered in Python, which compiled code doesn't have; write it in C++, and "
            "give it to custom_ops: docs/custom_ops.md"
        )
    schema = op._schema
    kinds = [str(result.real_type) for result in schema.returns]
    if kinds != kinds[::-1]:
        # torch 2.13 converts the results in reverse order, but reads their types in forward order.
        raise RefusedError(
            f"it returns {', '.join(kinds)}, and torch {torch.__version__}'s C interface takes the "
            "first one for the last one; results must be of the same types when read backwards"
        )
    arguments = [
        _scalar_tensor(wrapper, value, raw)
        if isinstance(argument.real_type, torch.TensorType) and isinstance(value, _NUMBERS)
        else _value(wrapper, value, argument.real_type, argument)
        for value, argument in zip(raw, schema.arguments, strict=True)
    ]
    arguments += ["0"] * (len(schema.returns) - len(arguments))
    declared: list[str] = []
    taken: list[str] = []
    for i, (result, value) in enumerate(zip(schema.returns, _results(op, outputs), strict=True)):
        _take(op, f"stack[{i}]", result.real_type, value, declared, taken)
    name, overload = (f'"{text}"' for text in (schema.name, schema.overload_name))
    return [
        *(f"RAIIAtenTensorHandle {buffer};" for buffer in declared),
        "{",
        f"    StableIValue stack[] = {{{', '.join(arguments or ['0'])}}};",
        f"    aoti_dispatch::Call({name}, {overload}, stack);",
        *(f"    {line}" for line in taken),
        "}",
    ]


def _python_only(op: Any) -> bool:
    schema = torch._C._dispatch_dump(op.name())
    kernels = torch._C._dispatch_dump_table(op.name())
    lines = [line for line in schema.splitlines() if line.startswith("debug: ")]
    lines += [line for line in kernels.splitlines() if line.startswith("CPU: ")]
    return any(_IN_PYTHON.search(line) for line in lines)


def _scalar_tensor(wrapper: Any, value: complex, others: Sequence[Any]) -> str:
    """A number in place of a tensor; it must not affect the result's dtype."""
    for other in others:
        if hasattr(other, "get_dtype") and other.get_size():
            dtype = other.get_dtype()
            if dtype.is_complex or (dtype.is_floating_point and not isinstance(value, complex)):
                text = wrapper.val_to_arg_str_for_prim_type(value, None)
                return f"aoti_dispatch::Tensor(scalar_to_tensor_handle({text}))"
    raise RefusedError(f"its argument {value} can't be made a tensor")


def _value(wrapper: Any, value: Any, kind: Any, argument: Argument) -> str:
    """C++ code for an argument, or for an element of it."""
    if isinstance(kind, torch.OptionalType):
        if value is None:
            return "aoti_dispatch::None()"
        return f"aoti_dispatch::Some({_value(wrapper, value, kind.getElementType(), argument)})"
    if isinstance(kind, torch.ListType):
        items = value if isinstance(value, (list, tuple)) else [value]
        texts = (_value(wrapper, item, kind.getElementType(), argument) for item in items)
        return f"aoti_dispatch::List({{{', '.join(texts)}}})"
    if isinstance(kind, torch.TensorType):
        if value is None:
            return "aoti_dispatch::UndefinedTensor()"
        if hasattr(value, "codegen_reference"):
            return f"aoti_dispatch::Tensor({value.codegen_reference()})"
    elif isinstance(kind, torch.StringType):
        return f"aoti_dispatch::Text({_literal(value)})"
    elif isinstance(kind, torch.DeviceObjType):
        return f"aoti_dispatch::Device({wrapper.codegen_device(value)})"
    elif isinstance(value, torch.dtype):
        return f"aoti_dispatch::Enum({wrapper.codegen_dtype(value)})"
    elif isinstance(value, torch.layout):
        return f"aoti_dispatch::Enum({wrapper.codegen_layout(value)})"
    elif isinstance(value, torch.memory_format):
        return f"aoti_dispatch::Enum({wrapper.codegen_memory_format(value)})"
    elif isinstance(value, (bool, int, float, torch.SymInt, torch.SymFloat, sympy.Basic)):
        text = wrapper.val_to_arg_str_for_prim_type(value, None)
        if isinstance(kind, (torch.IntType, torch.SymIntType)):
            return f"aoti_dispatch::Int({text})"
        if isinstance(kind, torch.FloatType):
            return f"aoti_dispatch::Float({text})"
        if isinstance(kind, torch.BoolType):
            return f"aoti_dispatch::Bool({text})"
    raise RefusedError(
        f'its argument "{argument.name}" of type {argument.real_type} can\'t be passed to it '
        f"by torch {torch.__version__}'s C interface"
    )


def _literal(text: str) -> str:
    """A string_view with any bytes; octal escapes end after three digits, whatever follows."""
    data = text.encode()
    plain = (chr(b) if 32 <= b < 127 and chr(b) not in '"\\?' else f"\\{b:03o}" for b in data)
    return f'std::string_view("{"".join(plain)}", {len(data)})'


def _results(op: Any, outputs: Sequence[Any]) -> list[Any]:
    """Inductor's buffers, with one entry for each value that the schema returns."""
    returns = op._schema.returns
    if not returns:
        return []
    if len(returns) == 1 and isinstance(returns[0].real_type, torch.ListType):
        return [list(outputs)]
    return list(outputs)


def _take(
    op: Any,
    source: str,
    kind: Any,
    value: Any,
    declared: list[str],
    taken: list[str],
) -> None:
    """Moves one returned value into its buffers, or drops it if it has none."""
    optional = isinstance(kind, torch.OptionalType)
    if optional:
        kind = kind.getElementType()
    if isinstance(kind, torch.TensorType):
        take = "TakeOptionalTensor" if optional else "TakeTensor"
        assign = ""
        if (buffer := _buffer(value)) is not None:
            declared.append(buffer)
            assign = f"{buffer} = "
        taken.append(f"{assign}aoti_dispatch::{take}({source});")
        return
    tensors = isinstance(kind, torch.ListType) and isinstance(
        kind.getElementType(), torch.TensorType
    )
    if tensors and not optional:
        variable = f"list{len(taken)}"
        taken.append(
            f'auto {variable} = aoti_dispatch::TakeTensors("{op.name()}", {source}, {len(value)});'
        )
        for i, item in enumerate(value):
            if (buffer := _buffer(item)) is not None:
                declared.append(buffer)
                taken.append(f"{buffer} = std::move({variable}[{i}]);")
        return
    # A number that is the same in every call is already part of the code.
    if optional or not isinstance(value, (bool, int, float)):
        raise RefusedError(f"it returns {kind}, and compiled code can take tensors only")


def _buffer(value: Any) -> str | None:
    from torch._inductor import ir

    return value.get_name() if isinstance(value, ir.MultiOutput) else None
