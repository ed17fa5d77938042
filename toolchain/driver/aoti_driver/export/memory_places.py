"""Refuses programs that depend on where in its memory a tensor begins.

``x.as_strided(size, stride, 3)`` begins at the fourth element of the memory of which ``x`` is a
view, wherever ``x`` begins in it. A compiled program gets the address of an input's first element
and can't read anything before it, so it is only right for inputs that begin where their memory
begins.
"""

from __future__ import annotations

from collections.abc import Mapping

from torch import fx, ops
from torch.export import ExportedProgram

from aoti_driver.base.errors import DriverError

_ABSOLUTE = (
    ops.aten.as_strided.default,
    ops.aten.as_strided_.default,
    ops.aten.as_strided_copy.default,
    ops.aten.as_strided_scatter.default,
)


def check(
    ep: ExportedProgram, offsets: Mapping[str, int], names: Mapping[str, str], label: str
) -> None:
    """Raises DriverError if the program was traced with a view whose position affects its results.

    offsets: for each of the graph's inputs, by placeholder, the element of its memory at which it
    begins.
    names: the user's names of the inputs.
    """
    moved = {name for name, offset in offsets.items() if offset}
    if not moved:
        return
    for node in ep.graph.nodes:
        if node.op != "call_function" or node.target not in _ABSOLUTE:
            continue
        source = node.args[0]
        if _offset(node) is None or not isinstance(source, fx.Node):
            continue
        for placeholder in sorted(_origins(source) & moved):
            raise DriverError(
                f"{label}: forward() calls as_strided with a storage offset on the input "
                f'"{names.get(placeholder, placeholder)}", and the sample is a view that begins at '
                f"element {offsets[placeholder]} of its memory: a compiled model gets a tensor's "
                "own elements only, so it would read others than PyTorch does. Export with a "
                "sample of its own memory (x.clone()), or slice the input in place of as_strided."
            )


def _offset(node: fx.Node) -> object:
    given = node.kwargs.get("storage_offset")
    if given is None:
        place = 4 if node.target is ops.aten.as_strided_scatter.default else 3
        given = node.args[place] if len(node.args) > place else None
    return given


def _origins(node: fx.Node) -> set[str]:
    """The graph's inputs of which a tensor may be a view."""
    found: set[str] = set()
    seen: set[fx.Node] = set()
    pending = [node]
    while pending:
        current = pending.pop()
        if current in seen:
            continue
        seen.add(current)
        if current.op == "placeholder":
            found.add(current.name)
        pending.extend(current.all_input_nodes)
    return found
