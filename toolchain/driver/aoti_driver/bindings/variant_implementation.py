"""What the C++ source has for a function with variants: its tables, and its calls."""

from __future__ import annotations

from aoti_driver.bindings.functions import Function, FunctionArgument, Taken, Value
from aoti_driver.bindings.model import Methods
from aoti_driver.bindings.text import cpp_string
from aoti_driver.bindings.variant_header import cpp_value, result_fields

_TABLES = """\
namespace function_{name} {{

{tables}

constexpr ::aoti::FunctionSpec kFunction = {{
    .name = {shown},
    .arguments = {arguments},
    .variants = kVariants,
}};

}}  // namespace function_{name}

"""

_KINDS = {
    "none": "kNone",
    "bool": "kBool",
    "int": "kInt",
    "float": "kFloat",
    "str": "kString",
    "": "kNone",
}
_MAKERS = {bool: "Bool", int: "Int", float: "Float", str: "String"}


def tables(methods: Methods, function: Function) -> str:
    texts = []
    if function.arguments:
        rows = "".join(f"    {_argument(argument)},\n" for argument in function.arguments)
        texts.append(f"constexpr ::aoti::ArgumentSpec kArguments[] = {{\n{rows}}};")
    variants = ""
    for v, (index, method) in enumerate(function.programs):
        rules = "{}"
        if function.arguments:
            rules = f"kRules_{method.variant}"
            rows = "".join(f"    {_rule(item.taken[v])},\n" for item in function.arguments)
            texts.append(f"constexpr ::aoti::ArgumentRule {rules}[] = {{\n{rows}}};")
        variants += f"    {{{cpp_string(method.variant)}, {index}, {rules}}},\n"
    texts.append(f"constexpr ::aoti::VariantSpec kVariants[] = {{\n{variants}}};")
    return _TABLES.format(
        name=function.name,
        tables="\n\n".join(texts),
        shown=cpp_string(methods.spec.shown(function.name)),
        arguments="kArguments" if function.arguments else "{}",
    )


def functions_list(all_variants: list[Function]) -> str:
    rows = ", ".join(f"&function_{function.name}::kFunction" for function in all_variants)
    return f"constexpr const ::aoti::FunctionSpec* kFunctions[] = {{{rows}}};\n\n"


def calls(cls: str, function: Function) -> str:
    prefix, spec = function.cpp_prefix, f"function_{function.name}::kFunction"
    views = ", ".join(f"::aoti::ToArgument(inputs.{a.cpp_name})" for a in function.arguments)
    count = len(function.arguments)
    parameter = "inputs" if function.arguments else ""
    options = ", const ::aoti::RunOptions& options" if function.on_cuda else ""
    passed = ", options" if function.on_cuda else ""
    arguments = f"  const std::array<::aoti::Argument, {count}> arguments = {{{views}}};\n"
    return (
        f"::aoti::Result<{cls}::{prefix}Outputs> {cls}::{function.cpp_call}(\n"
        f"    const {prefix}Inputs& {parameter}{options}) const {{\n"
        "  if (methods_.empty()) return MovedFrom();\n"
        f"{arguments}"
        f"  auto ran = ::aoti::RunVariant({spec}, methods_, arguments{passed});\n"
        "  if (!ran.ok()) return std::move(ran).error();\n"
        "  auto* const results = &ran->outputs;\n"
        f"  switch (ran->variant) {{\n{_cases(function)}  }}\n"
        "}\n\n"
        f"::aoti::Explanation {cls}::Explain{prefix}(const {prefix}Inputs& {parameter}) {{\n"
        f"{arguments}"
        f"  return ::aoti::Explain({spec}, kSpecs, arguments);\n"
        "}\n\n"
    )


def _cases(function: Function) -> str:
    fields = result_fields(function)
    last = len(function.programs) - 1
    text = ""
    for v in range(len(function.programs)):
        values = ", ".join(
            f".{field.name} = {field.values[v] or 'std::nullopt'}"
            for field in fields
            if field.constant is None
        )
        label = "default" if v == last else f"case {v}"
        text += f"    {label}:\n      return {function.cpp_prefix}Outputs{{{values}}};\n"
    return text


def _argument(argument: FunctionArgument) -> str:
    fields = [f".name = {cpp_string(argument.name)}", f".text = {cpp_string(argument.text)}"]
    if argument.value_kind:
        fields.append(f".value_kind = ::aoti::Argument::Kind::{_KINDS[argument.value_kind]}")
    if argument.has_default:
        fields.append(f".default_value = {_value(argument.default)}")
    return f"{{{', '.join(fields)}}}"


def _rule(taken: Taken) -> str:
    if taken.input is not None:
        return f"{{.input = {taken.index}}}"
    return f"{{.value = {_value(taken.value)}}}"


def _value(value: Value) -> str:
    if value is None:
        return "::aoti::Argument::None()"
    return f"::aoti::Argument::{_MAKERS[type(value)]}({cpp_value(value)})"
