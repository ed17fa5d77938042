"""What the type stub has for a function with variants."""

from __future__ import annotations

from collections.abc import Sequence

from aoti_driver.bindings.functions import Function, FunctionArgument
from aoti_driver.bindings.method_pymodule import function_docstring
from aoti_driver.bindings.results import PythonResult
from aoti_driver.bindings.stub import definition, docstring_text, parameters

# The members of a module whose only function has variants.
SIGNATURE = """\
inputs: dict[str, str]
outputs: dict[str, str]
dims: dict[str, tuple[int, int]]
variants: dict[str, Method]"""

_EXPLANATION = '''\
class Explanation(NamedTuple):
    """Which variant takes a call, if any does, and why each one before it does not."""

    variant: str | None
    refused: dict[str, str]'''

_EXPLAIN = (
    "Says which variant a call with these arguments would run, and why those before it would\n"
    "        not."
)


def definitions(variants: Sequence[Function]) -> list[str]:
    return [_EXPLANATION] if variants else []


def call(function: Function, results: Sequence[PythonResult]) -> str:
    result = " | ".join(dict.fromkeys(result.annotation for result in results))
    arguments = _arguments(function)
    first, *lines = function_docstring(function)
    doc = docstring_text([first, *(f"        {line}".rstrip() for line in lines)])
    text = definition(function.name, arguments, result, doc)
    text += definition(function.py_explain, arguments, "Explanation", _EXPLAIN)
    if function.name == "forward":  # what a call of the model is
        text += definition("__call__", arguments, result)
    return text


def _arguments(function: Function) -> list[str]:
    """The lists of parameters; those after one with a default that have none are named in calls."""
    inputs: list[tuple[str, str]] = []
    optional = False
    for argument in function.arguments:
        if optional and not argument.has_default and ("*", "*") not in inputs:
            inputs.append(("*", "*"))
        optional = optional or argument.has_default
        default = f" = {argument.default!r}" if argument.has_default else ""
        text = f"{argument.py_name}: {_annotation(argument)}{default}"
        inputs.append((argument.path, text))
    return parameters(inputs)


def _annotation(argument: FunctionArgument) -> str:
    kinds = {
        "": None,
        "bool": "bool",
        "int": "SupportsIndex",
        "float": "SupportsFloat",
        "str": "str",
    }
    names = ["TensorLike"] if argument.tensors else []
    if (kind := kinds[argument.value_kind]) is not None:
        names.append(kind)
    return " | ".join([*names, *(["None"] if argument.optional else [])])
