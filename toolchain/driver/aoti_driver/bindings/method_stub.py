"""The type stub of the Python module of a model with several methods."""

from __future__ import annotations

from aoti_driver.bindings import variant_stub
from aoti_driver.bindings.functions import functions
from aoti_driver.bindings.method_pymodule import docstring, method_docstring
from aoti_driver.bindings.model import Method, Methods
from aoti_driver.bindings.results import PythonResult, python_results
from aoti_driver.bindings.stub import (
    BEGINNING,
    COMMON,
    LOAD,
    SESSION,
    arguments,
    definition,
    docstring_text,
    load_device,
    sessions,
    typing_names,
    with_options,
)
from aoti_driver.bindings.text import substitute

_MODEL = '''
@final
class Method:
    """What a method takes and returns, and what it was made of."""

    @property
    def inputs(self) -> dict[str, str]: ...
    @property
    def outputs(self) -> dict[str, str]: ...
    @property
    def dims(self) -> dict[str, tuple[int, int]]: ...
    @property
    def variants(self) -> dict[str, Method]: ...
    @property
    def __provenance__(self) -> dict[str, Any]: ...

@NAMES@
__program__: str

@final
class Model:
    """A loaded model, made by load() alone. Thread safe; calls release the GIL."""

@METHODS@@SESSION@@COMMON@@SESSIONS@'''


def generate(methods: Methods) -> str:
    results = python_results(methods)
    by_key = {method.key: result for method, result in zip(methods.methods, results)}
    found = functions(methods)
    variants = [function for function in found if function.has_variants]
    calls = "".join(
        variant_stub.call(function, [by_key[method.key] for method in function.methods])
        if function.has_variants
        else _method(function.methods[0], by_key[function.methods[0].key])
        for function in found
    )
    calls += with_options([method.model for method in methods.methods])
    definitions = dict.fromkeys(text for result in results for text in result.definitions)
    return substitute(
        BEGINNING + _MODEL + LOAD,
        {
            "DOC": docstring_text(docstring(methods)),
            "TYPING": typing_names(
                [method.model for method in methods.methods],
                results,
                [item.value_kind for function in variants for item in function.arguments],
            ),
            "OUTPUTS": "\n\n".join([*definitions, *variant_stub.definitions(variants)]),
            "NAMES": "\n".join(
                variant_stub.SIGNATURE if function.single else f"{function.name}: Method"
                for function in found
            ),
            "METHODS": calls,
            "COMMON": COMMON,
            "SESSION": SESSION if methods.any.has_state else "",
            "SESSIONS": sessions(calls) if methods.any.has_state else "",
            **load_device(methods.any),
        },
    )


def _method(method: Method, result: PythonResult) -> str:
    first, *lines = method_docstring(method)
    doc = docstring_text([first, *(f"        {line}".rstrip() for line in lines)])
    text = definition(method.name, arguments(method.model), result.annotation, doc)
    if method.name == "forward":  # what a call of the model is
        text += definition("__call__", arguments(method.model), result.annotation)
    return text
