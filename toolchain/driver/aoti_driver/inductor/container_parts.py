"""Leaves the parts of a CPU's wrapper that only torch's container uses to the build of a package.

The container reads the names, shapes and dtypes of inputs and constants from the generated class,
and checks inputs if an environment variable says so; the runtime has all that from the manifest.
These parts and torch's headers take as long to compile as the rest of a small program.
"""

from __future__ import annotations

import re

# What torch's container knows the class by, and what runtime/core/generated_program.h has instead.
_HEADERS = """\
#ifdef AOTI_STOCK
#include <torch/csrc/inductor/aoti_include/cpu.h>
#include <torch/csrc/inductor/aoti_runtime/model.h>
#else
{more}#include "runtime/core/generated_program.h"
#endif
"""
_TORCH_HEADERS = "#include <torch/csrc/inductor/aoti_include/cpu.h>\n"

# Of the standard library, what runtime/core/generated_program.h includes for generated code.
_INCLUDED = re.compile(
    "abs|array|ceil|cos|cosh|exp|floor|fmod|isinf|isnan|log|log10|log2|make_unique|max|min|move"
    "|nullopt|numeric_limits|optional|pow|runtime_error|shared_ptr|sin|sinh|size_t|sqrt|string|tan"
    "|tanh|to_string|trunc|unique_ptr|vector"
)
_STANDARD = re.compile(r"\bstd::(\w+)(\s*\(\s*\{)?")
_MORE = "".join(
    f"#include <{name}>\n"
    for name in ("algorithm", "complex", "cstring", "functional", "iostream", "numeric", "sstream")
)

_CONSTRUCTOR = """\
{model_class}::{model_class}()
    : GeneratedProgram({counts}, std::make_unique<AOTInductorModelKernels>()) {{}}
}}  // namespace torch::aot_inductor
using namespace torch::aot_inductor;
namespace torch::aot_inductor {{
"""


def separate(wrapper: str, model_class: str) -> tuple[str, str]:
    """The headers that the wrapper needs, and the wrapper without them.

    In both, torch's own text is compiled if AOTI_STOCK is defined.
    """
    parts = re.compile(
        rf"^{model_class}::{model_class}\(std::shared_ptr<ConstantMap> .*?"
        r": AOTInductorModelBase\((?P<counts>\d+,\s+\d+,\s+\d+),.*?"
        r"^(?:AOTI_NOINLINE )?static void __check_inputs_outputs\(.*?\) \{(?:\}|.*?^\})\n",
        re.MULTILINE | re.DOTALL,
    )
    found = [*parts.finditer(wrapper)]
    if len(found) != 1 or wrapper.count(_TORCH_HEADERS) != 1:
        raise AssertionError(f"the generated wrapper of {model_class} has other parts")
    (part,) = found
    counts = re.sub(r"\s+", " ", part["counts"])
    constructor = _CONSTRUCTOR.format(model_class=model_class, counts=counts)
    before, behind = wrapper[: part.start()].replace(_TORCH_HEADERS, ""), wrapper[part.end() :]
    used = _STANDARD.findall(before + behind)
    more = any(of_list or not _INCLUDED.fullmatch(name) for name, of_list in used)
    return (
        _HEADERS.format(more=_MORE if more else ""),
        f"{before}#ifdef AOTI_STOCK\n{part[0]}#else\n{constructor}#endif\n{behind}",
    )
