"""The parts of a manifest about an exported program: its dims, inputs, outputs and constants.

The sizes of inputs are linear in one free dim, or sums and quotients of dims that other sizes give.
Those of outputs may be any expression of free dims.
"""

from __future__ import annotations

import dataclasses
from typing import Literal, TypeAlias

from aoti_driver.contract.size_expr import SizeExpr

# A Python number among the arguments, or in the result, by its type.
NumberType: TypeAlias = Literal["float", "int"]
ResultNumberType: TypeAlias = Literal["float", "int", "bool"]


@dataclasses.dataclass(frozen=True)
class Dim:
    """A dynamic dim: a free one has a range (both ends included), a derived one also an alias.

    ``alias`` is set for a derived dim such as ``seq = 2*half``: what it is in a free dim.
    """

    name: str
    min: int
    max: int
    alias: SizeExpr | None = None


@dataclasses.dataclass(frozen=True)
class Input:
    """One tensor that the caller passes, in the order in which the compiled program takes them.

    name: an identifier, unique in the model ("tokens", "past_key_values_0"); ``path`` is the
      place in forward()'s arguments as pytree text ("tokens", "past_key_values[0]").
    stride: in elements, one entry per dimension; the program was compiled for exactly these.
    mutated: the program writes to it in place; the caller's memory then has the new value.
    values: the values that a call may pass (lowest, highest, both included): the range in the spec,
      cut to the size of the table that the input indexes; None if neither is known. Calls are
      checked for those of integers and of numbers; those of tensors of floats only say how samples
      are drawn.
    value: for an int, which the program may use as a size (``x[:n]``): the dim whose value it is.
    number: for a Python number: its type. The program takes it as an int64 or float64 tensor of
      rank 0. default: its default in the signature, if that is a number in the range.
    """

    name: str
    path: str
    dtype: str
    shape: tuple[SizeExpr, ...]
    stride: tuple[SizeExpr, ...]
    mutated: bool = False
    values: tuple[float, float] | None = None
    value: str | None = None
    number: NumberType | None = None
    default: float | None = None


@dataclasses.dataclass(frozen=True)
class FixedArgument:
    """An argument that is the same in every call of the program, such as ``mode="mean"``.

    name and path: as an input's. value: as Python writes it. before: how many of the program's
      inputs come before it among the arguments. default: whether it is the parameter's default.
    """

    name: str
    path: str
    value: str
    before: int
    default: bool


@dataclasses.dataclass(frozen=True)
class Output:
    """One tensor that the program returns, in order.

    number: for a Python number, which the program returns as a float64, int64 or bool tensor of
      rank 0: its type.
    """

    name: str
    path: str
    dtype: str
    shape: tuple[SizeExpr, ...]
    number: ResultNumberType | None = None


@dataclasses.dataclass(frozen=True)
class Constant:
    """A parameter, buffer or constant tensor of the program, stored in the weights file.

    name: its key in the safetensors file (the fully qualified name; for tied tensors the first
      one's, by the program's order). Every key is stored contiguous.
    mutated: a buffer that the program writes to: each loaded model owns a writable copy.
    """

    name: str
    kind: str  # "parameter", "buffer" or "constant"
    dtype: str
    shape: tuple[int, ...]
    mutated: bool = False
