"""The ``decompositions`` attribute: which operators are replaced by simpler ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.export import ExportedProgram

from aoti_driver.base.errors import DriverError, did_you_mean
from aoti_driver.program import convolutions, recurrent

CORE_ATEN = "core_aten"


def decompose(ep: ExportedProgram, names: Sequence[str], label: str) -> ExportedProgram:
    """Does nothing without names. ``core_aten`` stands for all operators outside core ATen; other
    names are operators, such as ``aten.addmm.default`` or ``aten.addmm`` (all its overloads).
    """
    if not names:
        return ep
    with convolutions.layouts_of_every_host():
        decomposed: ExportedProgram = ep.run_decompositions(_chosen(ep, names, label))
    return decomposed


def _chosen(ep: ExportedProgram, names: Sequence[str], label: str) -> dict[Any, Any]:
    """The decompositions that the names stand for."""
    table: dict[Any, Any] = torch.export.default_decompositions()
    if CORE_ATEN in names:
        if any(recurrent.whole(ep.graph_module)):
            # The number of steps isn't known here, so they can't be written out.
            for operator in recurrent.OPERATORS:
                table.pop(operator, None)
        return table
    known: dict[str, list[torch._ops.OperatorBase]] = {}
    for operator in table:
        text = str(operator)
        known.setdefault(text, []).append(operator)
        known.setdefault(text.rpartition(".")[0], []).append(operator)
    chosen = {}
    for name in names:
        if name not in known:
            raise DriverError(
                f'{label}: decompositions: torch has none for "{name}"'
                f"{did_you_mean(name, sorted(known))}. Give operators such as "
                f'"aten.addmm.default", or "{CORE_ATEN}" for all of them.'
            )
        chosen.update({operator: table[operator] for operator in known[name]})
    return chosen
