"""Operators that aren't PyTorch's are replaced if possible (see inlining.py), and refused by name
otherwise.

Code is generated without the model's source, and compiled programs have only PyTorch's operators,
some of torchvision's, and those of ``custom_ops``.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch.export import ExportedProgram

from aoti_driver.base.errors import DriverError
from aoti_driver.contract.namespaces import is_own
from aoti_driver.contract.source_locations import Location, place
from aoti_driver.export.locations import location
from aoti_driver.export.source import SourceTree
from aoti_driver.program import operators, torchvision_operators
from aoti_driver.program.nodes import nodes_of

_COMPOSITE: Any = torch._C.DispatchKey.CompositeImplicitAutograd
_IN_PYTHON = re.compile(r"registered at .*\.py:\d+")
_PLACES = 5

# Advice for operators, by the beginnings of their names.
_REMEDIES = {
    "torchao::": (
        "torchao has layouts of weights that need no operator of its own: give the quantization "
        "config the plain one (such as intx_packing_format = "
        '"unpacked_to_int8"), and int4 weights decompositions = ["core_aten"]'
    ),
    "torchvision::": (
        "of torchvision's operators, compiled code has nms, roi_align and deform_conv2d, with "
        "torchvision's schemas. For others, return what goes into them, and do the rest in the "
        "program that calls the model"
    ),
}


@dataclasses.dataclass(frozen=True)
class Untraced:
    """Why the body of an operator in Python can't become part of the program.

    body: the line of it that failed. call: the line of the model that called it.
    """

    reason: str
    body: Location | None
    call: Location | None


def refuse(
    ep: ExportedProgram, untraced: Mapping[Any, Untraced], tree: SourceTree, label: str
) -> None:
    """Raises an error that names the remaining operators, the lines that call them, and
    remedies.
    """
    calls: dict[Any, list[str]] = {}
    for op, node in custom(ep):
        calls.setdefault(op, []).append(place(node.name, location(node, tree)))
    if calls:
        raise refusal(calls, untraced, label)


def refusal(
    calls: Mapping[Any, list[str]], untraced: Mapping[Any, Untraced], label: str
) -> DriverError:
    """calls: operators, with the places that call them; without any, the failure's is shown."""
    lines = []
    compiled = operators.compiled()
    for op in sorted(calls, key=str):
        name = op.name().partition(".")[0]
        lines.append(f"  {name}, which is registered in {'Python' if _in_python(op) else 'C++'}")
        why = untraced.get(op)
        known = [place(name, why.call)] if why and why.call else []
        places = list(dict.fromkeys(calls[op] or known))
        lines += [f"    used at {one}" for one in places[:_PLACES]]
        if len(places) > _PLACES:
            lines.append(f"    and at {len(places) - _PLACES} more places")
        if name in compiled:
            lines.append(
                f"    it is compiled from {compiled[name]}: add its torch_operator target to "
                "custom_ops"
            )
        elif why:
            lines.append(f"    its body can't be traced: {why.reason}")
            lines += [f"    at {place(name, why.body)}"] if why.body else []
        lines += [f"    {text}" for start, text in _REMEDIES.items() if name.startswith(start)]
    listing = "\n".join(lines)
    return DriverError(
        f"{label}: the model calls operators that aren't PyTorch's own, which compiled code can't "
        f"call, on the slim runtime or on libtorch:\n{listing}\n"
        "The body of an operator in Python becomes a part of the program if it computes with "
        "PyTorch's operators alone and does the same for all values of its tensors. Change the "
        "body, compute this part in the program that calls the model, or write the operator in C++ "
        "and give it to custom_ops: docs/custom_ops.md"
    )


def custom(ep: ExportedProgram) -> Iterator[tuple[Any, torch.fx.Node]]:
    """The operators of the program that aren't PyTorch's, with the nodes that call them."""
    for node in nodes_of(ep):
        op: Any = node.target
        if isinstance(op, torch._ops.HigherOrderOperator) and node.args:
            op = node.args[0]  # torch's wrapper of operators that write to their arguments
        if is_custom(op):
            yield op, node


def is_custom(op: Any) -> bool:
    """Whether it is an operator that neither PyTorch has, nor slim, nor ``custom_ops``."""
    own = isinstance(op, torch._ops.OpOverload) and is_own(op._schema.name)
    return own and not operators.is_declared(op) and not torchvision_operators.is_known(op)


def is_compiled(op: Any) -> bool:
    """Whether it is of a ``torch_operator``: its body runs compiled code."""
    return op._schema.name in operators.compiled()


def is_composite(op: Any) -> bool:
    """Whether the operator is registered as a name for a function of others."""
    return has_kernel(op, _COMPOSITE)


def has_kernel(op: Any, key: Any) -> bool:
    found: bool = torch._C._dispatch_has_kernel_for_dispatch_key(op.name(), key)
    return found


def cpu_kernel_in_python(op: Any) -> bool:
    table = torch._C._dispatch_dump_table(op.name())
    return any(line.startswith("CPU: ") and _IN_PYTHON.search(line) for line in table.splitlines())


def _in_python(op: Any) -> bool:
    dump = torch._C._dispatch_dump(op.name())
    return any(line.startswith("debug: ") and _IN_PYTHON.search(line) for line in dump.splitlines())
