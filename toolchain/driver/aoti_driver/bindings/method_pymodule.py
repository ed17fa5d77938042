"""The C++ source of the Python module of a model with several methods."""

from __future__ import annotations

from aoti_driver.bindings import pymodule
from aoti_driver.bindings.functions import Function, functions
from aoti_driver.bindings.model import Method, Methods
from aoti_driver.bindings.results import PythonResult, python_results
from aoti_driver.bindings.signature_text import describe
from aoti_driver.bindings.text import comment_text, cpp_string, substitute

_TEMPLATE = """\
// Generated from @LABEL@ by rules_aoti. Do not edit.

#include "@HEADER@"
#include "runtime/python/module.h"

namespace {

@USING@@TABLES@constexpr aoti::python::MethodSpec kMethods[] = {
@METHODS@};

@FUNCTIONS@constexpr char kDoc[] =
@DOC@;

}  // namespace

extern "C" __attribute__((visibility("default"))) _object* PyInit_@MODULE@() {
  static constexpr aoti::python::MethodsModuleSpec kModule = {
      .name = @MODULE_STRING@,
      .label = @LABEL_STRING@,
      .doc = kDoc,
      .methods = kMethods,
@FUNCTIONS_FIELD@  };
  return aoti::python::InitModule(kModule, ::@NAMESPACE@::@CLASS@::Specs()@FUNCTIONS_ARGUMENT@);
}
"""

_TABLES = """\
namespace method_{key} {{

{arrays}constexpr char kDoc[] =
{doc};

}}  // namespace method_{key}

"""


def generate(methods: Methods) -> str:
    spec = methods.spec
    results = python_results(methods)
    variants = [function for function in functions(methods) if function.has_variants]
    return substitute(
        _TEMPLATE,
        {
            "LABEL": comment_text(spec.label),
            "LABEL_STRING": cpp_string(spec.label),
            "HEADER": spec.names.header,
            "USING": "using aoti::python::ResultKind;\n\n" if any(r.table for r in results) else "",
            "TABLES": "".join(map(_tables, methods.methods, results)),
            "FUNCTIONS": _functions(variants) if variants else "",
            "FUNCTIONS_FIELD": "      .functions = kFunctions,\n" if variants else "",
            "FUNCTIONS_ARGUMENT": f",\n                                  "
            f"::{spec.names.namespace}::{spec.names.class_name}::Functions()"
            if variants
            else "",
            "METHODS": "".join(map(_entry, methods.methods, results)),
            "DOC": pymodule.string_lines(docstring(methods)),
            "MODULE": spec.names.py_module,
            "MODULE_STRING": cpp_string(spec.names.py_module),
            "NAMESPACE": spec.names.namespace,
            "CLASS": spec.names.class_name,
        },
    )


def docstring(methods: Methods) -> list[str]:
    """Of the module."""
    torch = methods.any.program.torch_version
    lines = [comment_text(f"The model {methods.spec.label}, compiled for torch {torch}.")]
    for function in functions(methods):
        if function.has_variants:
            lines += ["", *function_docstring(function)]
            continue
        for method in function.methods:
            lines += ["", f"{call_text(method)}:"]
            lines += [f"  {line}".rstrip() for line in describe(method.model)]
    return lines


def function_docstring(function: Function) -> list[str]:
    """Of a function with variants."""
    width = max((len(item.py_name) for item in function.arguments), default=0)
    lines = [f"{function.name}({', '.join(item.py_name for item in function.arguments)})", ""]
    lines += [
        f"  {item.py_name:{width}}  {comment_text(item.text)}"
        + (f", default {item.default!r}" if item.has_default else "")
        for item in function.arguments
    ]
    lines += ["", "The first of these variants runs that takes the arguments:"]
    for method in function.methods:
        lines += ["", f"{method.variant}:"]
        lines += [f"  {line}".rstrip() for line in describe(method.model)]
    return lines


def _functions(variants: list[Function]) -> str:
    text = rows = ""
    for function in variants:
        names = [item.py_name for item in function.arguments]
        paths = pymodule.path_array([item.path for item in function.arguments])
        text += (
            f"namespace function_{function.name} {{\n\n"
            f"{pymodule.array('kInputs', names)}{paths}constexpr char kDoc[] =\n"
            f"{pymodule.string_lines(function_docstring(function))};\n\n"
            f"}}  // namespace function_{function.name}\n\n"
        )
        scope = f"function_{function.name}"
        fields = [
            f".name = {cpp_string(function.name)}",
            f".explain = {cpp_string(function.py_explain)}",
            f".doc = {scope}::kDoc",
            f".input_names = {f'{scope}::kInputs' if names else '{}'}",
            f".input_paths = {f'{scope}::kPaths' if paths else '{}'}",
            f".single = {str(function.single).lower()}",
        ]
        body = "".join(f"     {field},\n" for field in fields)
        rows += f"    {{{body.strip()}}},\n"
    return f"{text}constexpr aoti::python::FunctionNames kFunctions[] = {{\n{rows}}};\n\n"


def method_docstring(method: Method) -> list[str]:
    title = comment_text(f"The program {method.model.program.label}.")
    return [call_text(method), "", title, "", *describe(method.model)]


def call_text(method: Method) -> str:
    """``decode(tokens, memory)``."""
    return f"{method.name}({', '.join(item.py_name for item in method.model.inputs)})"


def _tables(method: Method, result: PythonResult) -> str:
    arrays = pymodule.array("kInputs", [item.py_name for item in method.model.inputs])
    arrays += pymodule.array("kOutputs", [item.py_name for item in method.model.outputs])
    arrays += _paths(method)
    return _TABLES.format(
        key=method.key,
        arrays=arrays + pymodule.result_array(result.table),
        doc=pymodule.string_lines(method_docstring(method)),
    )


def _paths(method: Method) -> str:
    return pymodule.path_array([item.tensor.path for item in method.model.inputs])


def _entry(method: Method, result: PythonResult) -> str:
    scope = f"method_{method.key}"
    fields = [
        f".name = {cpp_string(method.name)}",
        f".doc = {scope}::kDoc",
        f".input_names = {f'{scope}::kInputs' if method.model.inputs else '{}'}",
        f".output_names = {f'{scope}::kOutputs' if method.model.outputs else '{}'}",
    ]
    if _paths(method):
        fields.append(f".input_paths = {scope}::kPaths")
    if result.table:
        fields.append(f".result = {scope}::kResult")
    fields.append(f".outputs_class = {cpp_string(result.top)}")
    if method.variant:
        fields.append(f".variant = {cpp_string(method.variant)}")
    body = "".join(f"     {field},\n" for field in fields)
    return f"    {{{body.strip()}}},\n"
