"""The C++ source that registers a compiled model as an operator, for other compiled models."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from aoti_driver.bindings import build_model
from aoti_driver.bindings.text import comment_text, cpp_string, substitute
from aoti_driver.contract.manifest import LibraryManifest

_TEMPLATE = """\
// Generated from @LABEL@ by rules_aoti. Do not edit.

@INCLUDES@
#include "runtime/operators/compiled.h"

namespace {

void Run(StableIValue* stack, uint64_t, uint64_t) {
  // Models are loaded by the first call, and stay: other threads may run them to the very end.
@MODELS@
  aoti::operators::Run({@VARIANTS@}, stack);
}

}  // namespace

STABLE_TORCH_LIBRARY_FRAGMENT(@NAMESPACE@, m) { m.def(@SCHEMA@); }
STABLE_TORCH_LIBRARY_IMPL(@NAMESPACE@, CPU, m) { m.impl(@OPERATOR@, &Run); }
"""


@dataclasses.dataclass(frozen=True)
class CppClass:
    """A compiled model's class; header: as it is included."""

    header: str
    name: str


def generate(
    label: str, operator: str, library: LibraryManifest, classes: Sequence[CppClass]
) -> str:
    """The source. library: of one variant; the schema is that of all."""
    namespace, _, name = operator.partition("::")
    models = [
        f"  static const auto* const m{i} = new aoti::Result<aoti::Model>(\n"
        f"      aoti::Model::Load({one.name}::Spec()));"
        for i, one in enumerate(classes)
    ]
    variants = [f"{{{one.name}::Spec(), *m{i}}}" for i, one in enumerate(classes)]
    return substitute(
        _TEMPLATE,
        {
            "LABEL": comment_text(label),
            "INCLUDES": "".join(f'#include "{one.header}"\n' for one in classes).rstrip(),
            "MODELS": "\n".join(models),
            "VARIANTS": ", ".join(variants),
            "NAMESPACE": namespace,
            "SCHEMA": cpp_string(name + schema(library)),
            "OPERATOR": cpp_string(name),
        },
    )


def schema(library: LibraryManifest) -> str:
    """In the language of PyTorch's schemas, without the name: as aoti_operator's `schema`."""
    inputs = []
    for i, item in enumerate(build_model.inputs_of(library.program)):
        if item.tensor.number is None and item.tensor.value is None:
            alias = f"(a{i}!)" if item.tensor.mutated else ""
            inputs.append(f"Tensor{alias} {item.py_name}")
        else:
            kind = "float" if item.tensor.number == "float" else "SymInt"
            default = "" if item.default is None else f"={item.default_text}"
            inputs.append(f"{kind} {item.py_name}{default}")
    outputs = ["Tensor"] * len(library.program.outputs)
    result = outputs[0] if len(outputs) == 1 else f"({', '.join(outputs)})"
    return f"({', '.join(inputs)}) -> {result}"
