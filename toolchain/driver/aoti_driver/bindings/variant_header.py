"""What the C++ header has for a function with variants: its types, and its declarations."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from aoti_driver.bindings import implementation, results
from aoti_driver.bindings.functions import Function, FunctionArgument, Value
from aoti_driver.bindings.header import comment, input_type, output_type
from aoti_driver.bindings.model import Method
from aoti_driver.bindings.signature_text import describe
from aoti_driver.bindings.text import comment_text, cpp_string

INCLUDES = '#include "aoti/variants.h"\n'

# Of a function of a class whose programs may run on a GPU.
OPTIONS = ", const ::aoti::RunOptions& options = {}"

_STRUCTS = """\
  struct {prefix}Inputs {{{inputs}
  }};

  struct {prefix}Outputs {{{outputs}
  }};

"""

_DECLARATIONS = """\
{comment}
  //
  // Errors: see aoti::RunVariant().
  ::aoti::Result<{prefix}Outputs> {call}(const {prefix}Inputs& inputs{options}) const;

  // Which variant {call}() would run, and why the ones before it would not.
  static ::aoti::Explanation Explain{prefix}(const {prefix}Inputs& inputs);

"""

_FUNCTIONS = """
  // The functions with variants, in the order {names}: for programs that handle any model.
  static std::span<const ::aoti::FunctionSpec* const> Functions();
"""

_VALUE_TYPES = {
    "bool": "bool",
    "int": "std::int64_t",
    "float": "double",
    "str": "std::string_view",
}


@dataclasses.dataclass(frozen=True)
class ResultField:
    """A member of the outputs. values: what each variant gives it; None where it has none.

    constant: its definition, where it is the same in all variants.
    """

    name: str
    type: str
    text: str
    values: tuple[str | None, ...]
    constant: str | None = None


def structs(function: Function) -> str:
    inputs = "".join(f"\n    {_input(argument)}" for argument in function.arguments)
    outputs = "".join(
        f"\n    {field.constant or f'{field.type} {field.name};  // {comment_text(field.text)}'}"
        for field in result_fields(function)
    )
    return _STRUCTS.format(prefix=function.cpp_prefix, inputs=inputs, outputs=outputs)


def declarations(function: Function) -> str:
    lines = ["The first of these variants runs that takes the inputs:", ""]
    for method in function.methods:
        lines += [f"{method.variant}: {method.model.program.label}"]
        lines += [f"  {line}".rstrip() for line in describe(method.model)] + [""]
    text = comment([comment_text(line) if line.strip() == line else line for line in lines[:-1]])
    return _DECLARATIONS.format(
        comment="\n".join(f"  {line}" for line in text.splitlines()),
        prefix=function.cpp_prefix,
        call=function.cpp_call,
        options=OPTIONS if function.on_cuda else "",
    )


def members(variants: Sequence[Function]) -> str:
    return _FUNCTIONS.format(names=", ".join(function.name for function in variants))


def argument_type(argument: FunctionArgument) -> str:
    mutated = any(item.tensor.mutated for item in argument.tensors)
    types = list(
        dict.fromkeys(
            input_type(item).replace("<const ", "<") if mutated else input_type(item)
            for item in argument.tensors
        )
    )
    if argument.value_kind:
        types.append(_VALUE_TYPES[argument.value_kind])
    if len(types) > 1:
        none = ["std::monostate"] if argument.optional else []
        return f"std::variant<{', '.join([*none, *types])}>"
    # Nothing else stands for a bool that a call leaves out.
    left_out = types == ["bool"] and not argument.has_default
    return f"std::optional<{types[0]}>" if argument.optional or left_out else types[0]


def _input(argument: FunctionArgument) -> str:
    kind = argument_type(argument)
    default = ""
    if argument.has_default and argument.default is not None:
        default = f" = {cpp_value(argument.default)}"
    elif kind in ("std::int64_t", "double"):
        default = " = ::aoti::kNotGiven"
    return f"{kind} {argument.cpp_name}{default};  // {comment_text(argument.text)}"


def cpp_value(value: Value) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return cpp_string(value)
    if isinstance(value, int):
        return f"std::int64_t{{{value}}}" if value != -(2**63) else "INT64_MIN"
    return results.cpp_float(repr(value))


def result_fields(function: Function) -> list[ResultField]:
    """The members of the outputs of all variants together."""
    found: dict[str, list[tuple[str, str, str] | None]] = {}
    count = len(function.programs)
    constants: dict[str, set[str]] = {}
    for v, method in enumerate(function.methods):
        for name, kind, text, value, constant in _fields(method):
            found.setdefault(name, [None] * count)[v] = (kind, text, value)
            constants.setdefault(name, set()).add(constant)
    fields = []
    for name, given in found.items():
        known = [item for item in given if item is not None]
        types = list(dict.fromkeys(kind for kind, _, _ in known))
        kind = types[0] if len(types) == 1 else f"std::variant<{', '.join(types)}>"
        if len(known) < count:
            kind = f"std::optional<{kind}>"
        texts = [*dict.fromkeys(text for _, text, _ in known)]
        same = constants[name] if len(known) == count else set()
        fields.append(
            ResultField(
                name,
                kind,
                " | ".join(texts + (["none"] if len(known) < count else [])),
                tuple(item and item[2] for item in given),
                next(iter(same)) or None if len(same) == 1 else None,
            )
        )
    return fields


def _fields(method: Method) -> list[tuple[str, str, str, str, str]]:
    """Name, type, text, value and the definition of a constant, of each output of a program."""
    rows = []
    for i, item in enumerate(method.model.outputs):
        value = implementation.result_value(i, item)
        rows.append((item.cpp_name, output_type(item), item.type_text, value, ""))
    if method.model.program.result is not None:
        for node in method.model.program.result.constants():
            name, kind, value = results.constant(node)
            definition = f"static constexpr {kind} {name} = {value};  // constant"
            rows.append((name, kind, f"constant {node.value}", f"{kind}({value})", definition))
    return rows
