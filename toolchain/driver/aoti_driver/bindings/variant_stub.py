"""What the type stub has for a function with variants."""

from __future__ import annotations

from collections.abc import Sequence

from aoti_driver.bindings.functions import Function, FunctionArgument
from aoti_driver.bindings.method_pymodule import function_docstring
from aoti_driver.bindings.results import PythonResult
from aoti_driver.bindings.stub import docstring_text

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

_CALL = '''\
    def {name}({arguments}) -> {result}:
        """{doc}
        """
    def {explain}({arguments}) -> Explanation:
        """Says which variant a call with these arguments would run, and why those before it would
        not."""
'''


def definitions(variants: Sequence[Function]) -> list[str]:
    return [_EXPLANATION] if variants else []


def call(function: Function, results: Sequence[PythonResult]) -> str:
    result = " | ".join(dict.fromkeys(result.annotation for result in results))
    arguments = ", ".join(["self", *_arguments(function)])
    first, *lines = function_docstring(function)
    text = _CALL.format(
        name=function.name,
        explain=function.py_explain,
        arguments=arguments,
        result=result,
        doc=docstring_text([first, *(f"        {line}".rstrip() for line in lines)]),
    )
    if function.name == "forward":  # what a call of the model is
        text += f"    def __call__({arguments}) -> {result}: ...\n"
    return text


def _arguments(function: Function) -> list[str]:
    """The parameters; those after one with a default that have none are named in calls."""
    texts = []
    optional = False
    for argument in function.arguments:
        if optional and not argument.has_default and "*" not in texts:
            texts.append("*")
        optional = optional or argument.has_default
        default = f" = {argument.default!r}" if argument.has_default else ""
        texts.append(f"{argument.py_name}: {_annotation(argument)}{default}")
    return texts


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
