"""The parameters of a kernel, from its function and the attributes of the target."""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from aoti_driver.base.errors import DriverError, did_you_mean, listed
from aoti_driver.contract.dtypes import DTYPES

# dtype -> (Triton's name, the C++ type)
_TYPES = {
    **{
        name: (triton, DTYPES[name].cpp)
        for name, triton in {
            "bool": "i1",
            "int8": "i8",
            "int16": "i16",
            "int32": "i32",
            "int64": "i64",
            "uint8": "u8",
            "float16": "fp16",
            "bfloat16": "bf16",
            "float32": "fp32",
            "float64": "fp64",
        }.items()
    },
    "uint16": ("u16", "std::uint16_t"),
    "uint32": ("u32", "std::uint32_t"),
    "uint64": ("u64", "std::uint64_t"),
}


@dataclasses.dataclass(frozen=True)
class Parameter:
    """A parameter of the launcher. type: ``const float32*``, ``float32*`` or ``int64``."""

    name: str
    type: str
    divisible_by_16: bool

    @property
    def is_pointer(self) -> bool:
        return self.type.endswith("*")

    @property
    def is_integer(self) -> bool:
        return not self.is_pointer and self.type.lstrip("u").startswith("int")

    @property
    def triton(self) -> str:
        """``*kfp32``, ``*fp32`` or ``i64``."""
        prefix = ("*k" if self.type.startswith("const ") else "*") if self.is_pointer else ""
        return prefix + _TYPES[self.dtype][0]

    @property
    def cpp(self) -> str:
        prefix = "const " if self.type.startswith("const ") else ""
        return prefix + _TYPES[self.dtype][1] + ("*" if self.is_pointer else "")

    @property
    def dtype(self) -> str:
        """Of the number, or of what the pointer is to."""
        return self.type.removeprefix("const ").removesuffix("*")


@dataclasses.dataclass(frozen=True)
class Parameters:
    """launched: in the function's order. constants: the values of the parameters that are
    ``tl.constexpr``.
    """

    launched: Sequence[Parameter]
    constants: Mapping[str, Any]


def find(
    function: Any,
    signature: Mapping[str, str],
    constants: Mapping[str, str],
    divisible: Iterable[str],
    label: str,
) -> Parameters:
    """function: a ``JITFunction``. Raises DriverError where the attributes don't fit it."""
    name = function.fn.__name__
    call = f"{name}({', '.join(function.arg_names)})"
    fixed = [each.name for each in function.params if each.is_constexpr]
    free = [each.name for each in function.params if not each.is_constexpr]
    for attribute, names in (("signature", signature), ("constants", constants)):
        for each in names:
            if each not in function.arg_names:
                raise DriverError(
                    f'{label}: {attribute}["{each}"]: {call} has no such parameter'
                    f"{did_you_mean(each, function.arg_names)}"
                )
    for each in constants:
        if each in free:
            raise DriverError(
                f'{label}: constants["{each}"]: the parameter is not a constant of {call}; '
                f"declare it {each}: tl.constexpr there, or give its type in signature"
            )
    for each in signature:
        if each in fixed:
            raise DriverError(
                f'{label}: signature["{each}"]: the parameter is tl.constexpr in {call}; give its '
                "value in constants"
            )
    if missing := [each for each in free if each not in signature]:
        raise DriverError(
            f"{label}: signature leaves out {listed(missing)} of {call}; give the type of each, "
            'such as "const float32*" or "int64"'
        )
    defaults = {each.name: each.default for each in function.params if each.has_default}
    values = {each: _value(text, each, label) for each, text in constants.items()}
    if missing := [each for each in fixed if each not in values and each not in defaults]:
        raise DriverError(
            f"{label}: constants leaves out {listed(missing)} of {call}, which is tl.constexpr; "
            "give the value of each"
        )
    return Parameters(
        [Parameter(each, signature[each], each in divisible) for each in free],
        {each: values.get(each, defaults.get(each)) for each in fixed},
    )


def _value(text: str, name: str, label: str) -> Any:
    """The value of a constant, as Python writes it."""
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        value = ()
    if not isinstance(value, bool | int | float | str):
        raise DriverError(
            f'{label}: constants["{name}"] = "{text}" is not a value; expected a number, True, '
            'False or a quoted text, as Python writes it, such as "128" or "\'relu\'"'
        )
    return value
