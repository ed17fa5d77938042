"""Operators that aren't PyTorch's are decomposed if possible, and refused by name otherwise.

Code is generated without the model's source, and compiled programs have only PyTorch's operators
and those of ``custom_ops``.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from typing import Any

import torch
from torch.export import ExportedProgram

from aoti_driver.base.errors import DriverError
from aoti_driver.contract.namespaces import is_own
from aoti_driver.contract.source_locations import place
from aoti_driver.export.locations import location
from aoti_driver.export.source import SourceTree
from aoti_driver.program import operators
from aoti_driver.program.nodes import nodes_of

_COMPOSITE: Any = torch._C.DispatchKey.CompositeImplicitAutograd
_IN_PYTHON = re.compile(r"registered at .*\.py:\d+")
_PLACES = 5

# Advice for operators, by the beginnings of their names.
_REMEDIES = {
    "transformers::grouped_mm": (
        "transformers has the same experts in PyTorch's operators: experts_implementation=\""
        'batched_mm" of from_pretrained() and from_config(), or '
        'model.set_experts_implementation("batched_mm") after it'
    ),
    "torchao::": (
        "torchao has layouts of weights that need no operator of its own: give the quantization "
        "config the plain one (such as intx_packing_format = "
        '"unpacked_to_int8"), and int4 weights decompositions = ["core_aten"]'
    ),
    "torchvision::": (
        "return what goes into it (boxes and scores, say), and do the rest in the program that "
        "calls the model"
    ),
}


def written_out(ep: ExportedProgram) -> ExportedProgram:
    """Replaces operators that are made of others by these, if their registration allows it.

    torchao registers operators like this: as a name for a function of PyTorch's operators.
    """
    # The registered function itself, because op.decompose may lead back to this table.
    composites = {
        op: functools.partial(op._op_dk, _COMPOSITE)
        for op, _ in _custom(ep)
        if _is_composite(op) and not operators.is_declared(op)
    }
    return ep.run_decompositions(composites) if composites else ep


def refuse(ep: ExportedProgram, tree: SourceTree, label: str) -> None:
    """Raises an error that names the remaining operators, the lines that call them, and
    remedies.
    """
    calls: dict[str, list[torch.fx.Node]] = {}
    kinds: dict[str, str] = {}
    for op, node in _custom(ep):
        if operators.is_declared(op):
            continue
        calls.setdefault(op.name().partition(".")[0], []).append(node)
        kinds[op.name().partition(".")[0]] = "Python" if _in_python(op) else "C++"
    if not calls:
        return
    lines = []
    for name, nodes in sorted(calls.items()):
        lines.append(f"  {name}, which is registered in {kinds[name]}")
        places = dict.fromkeys(place(node.name, location(node, tree)) for node in nodes)
        lines += [f"    used at {place}" for place in list(places)[:_PLACES]]
        if len(places) > _PLACES:
            lines.append(f"    and at {len(places) - _PLACES} more places")
        lines += [f"    {text}" for start, text in _REMEDIES.items() if name.startswith(start)]
    listing = "\n".join(lines)
    raise DriverError(
        f"{label}: the model calls operators that aren't PyTorch's own, which compiled code can't "
        f"call, on the slim runtime or on libtorch:\n{listing}\n"
        "Call PyTorch's operators in forward() instead: for an operator in Python, call its "
        "function without the decorator (@torch.library.custom_op). Or register the operator as "
        "composed of others, by which it is then replaced: library.impl(name, function, "
        '"CompositeImplicitAutograd"). Or write it in C++ and give it to custom_ops: '
        "docs/custom_ops.md"
    )


def _custom(ep: ExportedProgram) -> Iterator[tuple[Any, torch.fx.Node]]:
    for node in nodes_of(ep):
        op = node.target
        if isinstance(op, torch._ops.OpOverload) and is_own(op.name()):
            yield op, node


def _is_composite(op: Any) -> bool:
    composite: bool = torch._C._dispatch_has_kernel_for_dispatch_key(op.name(), _COMPOSITE)
    return composite


def _in_python(op: Any) -> bool:
    dump = torch._C._dispatch_dump(op.name())
    return any(line.startswith("debug: ") and _IN_PYTHON.search(line) for line in dump.splitlines())
