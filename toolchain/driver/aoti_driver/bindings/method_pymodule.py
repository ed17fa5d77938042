"""The C++ source of the Python module of a model with several methods."""

from __future__ import annotations

from aoti_driver.bindings import pymodule
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

constexpr char kDoc[] =
@DOC@;

}  // namespace

extern "C" __attribute__((visibility("default"))) _object* PyInit_@MODULE@() {
  static constexpr aoti::python::MethodsModuleSpec kModule = {
      .name = @MODULE_STRING@,
      .label = @LABEL_STRING@,
      .doc = kDoc,
      .methods = kMethods,
  };
  return aoti::python::InitModule(kModule, ::@NAMESPACE@::@CLASS@::Specs());
}
"""

_TABLES = """\
namespace method_{name} {{

{arrays}constexpr char kDoc[] =
{doc};

}}  // namespace method_{name}

"""


def generate(methods: Methods) -> str:
    spec = methods.spec
    results = python_results(methods)
    return substitute(
        _TEMPLATE,
        {
            "LABEL": comment_text(spec.label),
            "LABEL_STRING": cpp_string(spec.label),
            "HEADER": spec.names.header,
            "USING": "using aoti::python::ResultKind;\n\n" if any(r.table for r in results) else "",
            "TABLES": "".join(map(_tables, methods.methods, results)),
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
    for method in methods.methods:
        lines += ["", f"{call_text(method)}:"]
        lines += [f"  {line}".rstrip() for line in describe(method.model)]
    return lines


def method_docstring(method: Method) -> list[str]:
    title = comment_text(f"The program {method.model.program.label}.")
    return [call_text(method), "", title, "", *describe(method.model)]


def call_text(method: Method) -> str:
    """``decode(tokens, memory)``."""
    return f"{method.name}({', '.join(item.py_name for item in method.model.inputs)})"


def _tables(method: Method, result: PythonResult) -> str:
    arrays = pymodule.array("kInputs", [item.py_name for item in method.model.inputs])
    arrays += pymodule.array("kOutputs", [item.py_name for item in method.model.outputs])
    return _TABLES.format(
        name=method.name,
        arrays=arrays + pymodule.result_array(result.table),
        doc=pymodule.string_lines(method_docstring(method)),
    )


def _entry(method: Method, result: PythonResult) -> str:
    scope = f"method_{method.name}"
    fields = [
        f".name = {cpp_string(method.name)}",
        f".doc = {scope}::kDoc",
        f".input_names = {f'{scope}::kInputs' if method.model.inputs else '{}'}",
        f".output_names = {f'{scope}::kOutputs' if method.model.outputs else '{}'}",
    ]
    if result.table:
        fields.append(f".result = {scope}::kResult")
    fields.append(f".outputs_class = {cpp_string(method.outputs_class)}")
    body = "".join(f"     {field},\n" for field in fields)
    return f"    {{{body.strip()}}},\n"
