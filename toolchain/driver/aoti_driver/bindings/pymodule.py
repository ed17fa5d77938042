"""The C++ source of a model's Python module. What modules have in common is in runtime/python."""

from __future__ import annotations

from aoti_driver.bindings.model import Model
from aoti_driver.bindings.results import PythonResult
from aoti_driver.bindings.signature_text import describe
from aoti_driver.bindings.text import comment_text, cpp_string, substitute

_TEMPLATE = """\
// Generated from @LABEL@ by rules_aoti. Do not edit.

#include "@HEADER@"
#include "runtime/python/module.h"

namespace {

@USING@@NAMES@constexpr char kDoc[] =
@DOC@;

}  // namespace

extern "C" __attribute__((visibility("default"))) _object* PyInit_@MODULE@() {
  static constexpr aoti::python::ModuleSpec kModule = {
      .name = @MODULE_STRING@,
      .doc = kDoc,
      .input_names = @INPUTS@,
      .output_names = @OUTPUTS@,
@PATHS@@RESULT@  };
  return aoti::python::InitModule(kModule, ::@NAMESPACE@::@CLASS@::Spec());
}
"""


def generate(model: Model) -> str:
    inputs = [item.py_name for item in model.inputs]
    paths = path_array([item.tensor.path for item in model.inputs])
    outputs = [item.py_name for item in model.outputs]
    table = PythonResult(model).table
    return substitute(
        _TEMPLATE,
        {
            "LABEL": comment_text(model.program.label),
            "HEADER": model.spec.header,
            "USING": "using aoti::python::ResultKind;\n\n" if table else "",
            "NAMES": array("kInputs", inputs)
            + array("kOutputs", outputs)
            + paths
            + result_array(table),
            "DOC": string_lines(docstring(model)),
            "MODULE": model.spec.py_module,
            "MODULE_STRING": cpp_string(model.spec.py_module),
            "INPUTS": "kInputs" if inputs else "{}",
            "OUTPUTS": "kOutputs" if outputs else "{}",
            "PATHS": "      .input_paths = kPaths,\n" if paths else "",
            "RESULT": "      .result = kResult,\n" if table else "",
            "NAMESPACE": model.spec.namespace,
            "CLASS": model.spec.class_name,
        },
    )


def docstring(model: Model) -> list[str]:
    title = f"The model {model.program.label}, compiled for torch {model.program.torch_version}."
    return [comment_text(title), "", *describe(model)]


def string_lines(lines: list[str]) -> str:
    """A C++ string of the lines."""
    return "\n".join(f"    {cpp_string(line + chr(10))}" for line in lines)


def result_array(table: list[str]) -> str:
    """The definition of a result's nodes; nothing for a namedtuple of the outputs."""
    if not table:
        return ""
    body = "".join(f"    {row},\n" for row in table)
    return f"constexpr aoti::python::ResultNode kResult[] = {{\n{body}}};\n"


def path_array(paths: list[str]) -> str:
    """The paths of the inputs; nothing if none is a part of a structure."""
    return array("kPaths", paths) if any("[" in p or "." in p for p in paths) else ""


def array(name: str, items: list[str]) -> str:
    """The definition of an array of strings; nothing if it is empty."""
    if not items:
        return ""
    return f"constexpr const char* {name}[] = {{{', '.join(map(cpp_string, items))}}};\n"
