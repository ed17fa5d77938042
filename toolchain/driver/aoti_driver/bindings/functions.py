"""The functions of a model: a method with one program, or with several, which are its variants."""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Sequence
from typing import TypeAlias

from aoti_driver.base.errors import DriverError
from aoti_driver.bindings import names
from aoti_driver.bindings.model import Input, Method, Methods
from aoti_driver.contract.program_parts import FixedArgument

Value: TypeAlias = bool | int | float | str | None


class _Tuple(str):
    """The text of a tuple, which must be the same in all variants."""


@dataclasses.dataclass(frozen=True)
class Taken:
    """What a variant takes for an argument: an input of its program, or a value."""

    input: Input | None = None
    index: int = -1
    value: Value = None

    @property
    def kind(self) -> str:
        """``tensor``, or the Python type of the value or number; ``none`` for None."""
        if self.input is not None:
            return self.input.tensor.number or "tensor"
        return "none" if self.value is None else type(self.value).__name__

    @property
    def text(self) -> str:
        return repr(self.value) if self.input is None else self.input.type_text


@dataclasses.dataclass(frozen=True)
class FunctionArgument:
    """An argument of a function with variants.

    taken: what each variant takes. value_kind: the Python type of the values and numbers among
    them, "" for none. default: that of the signature, if ``has_default``.
    """

    name: str
    taken: tuple[Taken, ...]
    value_kind: str
    has_default: bool
    default: Value

    @property
    def cpp_name(self) -> str:
        return names.cpp_name(self.name)

    @property
    def py_name(self) -> str:
        return names.python_name(self.name)

    @property
    def path(self) -> str:
        """As in forward()'s arguments: ``cache[0]``."""
        return next((t.input.tensor.path for t in self.taken if t.input is not None), self.name)

    @property
    def tensors(self) -> list[Input]:
        return [t.input for t in self.taken if t.input is not None and t.kind == "tensor"]

    @property
    def optional(self) -> bool:
        return any(taken.kind == "none" for taken in self.taken)

    @property
    def text(self) -> str:
        """What calls may pass: ``bool[batch, seq] | None``."""
        texts = dict.fromkeys(taken.text for taken in self.taken if taken.kind != "none")
        return " | ".join([*texts, *(["None"] if self.optional else [])])


@dataclasses.dataclass(frozen=True)
class Function:
    """programs: their indices in the model. arguments: empty without variants."""

    name: str
    single: bool
    programs: tuple[tuple[int, Method], ...]
    arguments: tuple[FunctionArgument, ...] = ()

    @property
    def has_variants(self) -> bool:
        return bool(self.programs[0][1].variant)

    @property
    def methods(self) -> list[Method]:
        return [method for _, method in self.programs]

    @property
    def on_cuda(self) -> bool:
        """Whether its programs may run on a GPU: then calls have options."""
        return any(method.model.on_cuda for method in self.methods)

    @property
    def cpp_prefix(self) -> str:
        return "" if self.single else self.methods[0].cpp_name

    @property
    def py_explain(self) -> str:
        return "explain" if self.single else f"explain_{self.name}"

    @property
    def cpp_call(self) -> str:
        return self.cpp_prefix or "Run"


def functions(methods: Methods) -> tuple[Function, ...]:
    """The functions in the order of their first programs."""
    groups: dict[str, list[tuple[int, Method]]] = {}
    for index, method in enumerate(methods.methods):
        groups.setdefault(method.name, []).append((index, method))
    result = []
    for name, programs in groups.items():
        function = Function(name, methods.spec.single, tuple(programs))
        if function.has_variants:
            found = _arguments(methods.spec.label, function.methods)
            function = dataclasses.replace(function, arguments=found)
        result.append(function)
    return tuple(result)


def _arguments(label: str, variants: Sequence[Method]) -> tuple[FunctionArgument, ...]:
    taken = [_taken(label, variant) for variant in variants]
    defaults = {
        fixed.name: _value(label, variant, fixed)
        for variant in variants
        for fixed in variant.model.program.fixed
        if fixed.default
    }
    result = []
    for name in _order(taken):
        items = tuple(one.get(name, Taken()) for one in taken)
        if len({(item.kind, item.value) for item in items}) == 1 and items[0].input is None:
            continue  # it does not vary
        if any(isinstance(item.value, _Tuple) for item in items):
            raise DriverError(
                f'{label}: inputs["{name}"]: a tuple can\'t choose a variant: give it the same '
                "value in all variants, or choose by a bool, an int, a float, a str or None"
            )
        kinds = {item.kind for item in items} - {"tensor", "none"}
        if kinds == {"int", "float"}:
            kinds = {"float"}
            items = tuple(map(_as_float, items))
        if len(kinds) > 1:
            raise DriverError(
                f'{label}: inputs["{name}"]: its values have the types {", ".join(sorted(kinds))}; '
                "the values of one argument have one type"
            )
        numbers = [t.input.default for t in items if t.input and t.input.default is not None]
        if numbers:
            defaults.setdefault(name, _number(numbers[0], kinds))
        if any(name not in one for one in taken):
            defaults.setdefault(name, None)  # as a part of a structure that is None
        default = defaults.get(name)
        if kinds == {"float"} and isinstance(default, int):
            default = float(default)
        result.append(FunctionArgument(name, items, "".join(kinds), name in defaults, default))
    for pairs in (
        [(item.name, item.cpp_name) for item in result],
        [(item.name, item.py_name) for item in result],
    ):
        names.check_unique(pairs, f"{label}: inputs")
    return tuple(result)


def _number(value: float, kinds: set[str]) -> Value:
    return int(value) if kinds == {"int"} else float(value)


def _as_float(item: Taken) -> Taken:
    if item.input is not None or not isinstance(item.value, int):
        return item
    return dataclasses.replace(item, value=float(item.value))


def _taken(label: str, variant: Method) -> dict[str, Taken]:
    """What a variant takes, by the argument's name, in the order of the signature."""
    result: dict[str, Taken] = {}
    inputs = variant.model.inputs
    for index in range(len(inputs) + 1):
        for fixed in variant.model.program.fixed:
            if fixed.before == index:
                result[fixed.name] = Taken(value=_value(label, variant, fixed))
        if index < len(inputs):
            result[inputs[index].tensor.name] = Taken(inputs[index], index)
    return result


def _value(label: str, variant: Method, fixed: FixedArgument) -> Value:
    value = ast.literal_eval(fixed.value)
    return _Tuple(fixed.value) if isinstance(value, tuple) else value


def _order(taken: Sequence[dict[str, Taken]]) -> list[str]:
    """All names: those of the first variant, and each other one after the one before it."""
    order = list(taken[0])
    for names_of_one in taken[1:]:
        position = 0
        for name in names_of_one:
            if name in order:
                position = order.index(name) + 1
            else:
                order.insert(position, name)
                position += 1
    return order
