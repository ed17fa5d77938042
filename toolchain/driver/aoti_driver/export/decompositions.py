"""The ``decompositions`` attribute: which operators are replaced by simpler ones.

Its entries are the names of sets and operators with a sign: ``+aten.gelu`` (or without the sign) is
replaced, ``-aten.silu`` is kept although a set has it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import torch
from torch._decomp import decomposition_table
from torch.export import ExportedProgram

from aoti_driver.base.errors import DriverError, did_you_mean, listed
from aoti_driver.program import convolutions, recurrent

_Table: TypeAlias = dict[Any, Callable[..., Any]]

_NONE = "none"
_GRAMMAR = 'Give sets ({sets}) and operators, such as "aten.gelu", "-aten.silu.default"'


def decompose(ep: ExportedProgram, names: Sequence[str], label: str) -> ExportedProgram:
    """Does nothing without names."""
    if not names:
        return ep
    table = chosen(names, f"{label}: decompositions", any(recurrent.whole(ep.graph_module)))
    if not table:
        return ep
    with convolutions.layouts_of_every_host():
        decomposed: ExportedProgram = ep.run_decompositions(table)
    return decomposed


def chosen(names: Sequence[str], where: str, whole_recurrent: bool = False) -> _Table:
    """The decompositions that the names stand for.

    where: what an error begins with. whole_recurrent: whether the program has a recurrent layer
    whose number of steps varies, so that sets can't write them out.
    """
    entries = [(name, *_split(name)) for name in names]
    sets = list(dict.fromkeys(rest for _, sign, rest in entries if not sign and rest in _SETS))
    table: _Table = {}
    for name in sets:
        table |= _SETS[name]()
    if whole_recurrent:
        for operator in recurrent.OPERATORS:
            table.pop(operator, None)
    every = _every()
    known = _by_name(every)
    replaced: dict[Any, str] = {}
    kept: dict[Any, str] = {}
    for name, sign, rest in entries:
        if not sign and rest in _SETS:
            continue
        if rest in _SETS:
            raise DriverError(f'{where}: "{name}": a set has no sign. Give "{rest}".')
        if rest not in known:
            raise DriverError(f"{where}: {_unknown(name, rest, known)}")
        (kept if sign == "-" else replaced).update(dict.fromkeys(known[rest], name))
    if problem := _contradiction(sets, table, replaced, kept):
        raise DriverError(f"{where}: {problem}")
    return {operator: f for operator, f in table.items() if operator not in kept} | {
        operator: every[operator] for operator in replaced
    }


def _contradiction(
    sets: Sequence[str], table: _Table, replaced: Mapping[Any, str], kept: Mapping[Any, str]
) -> str | None:
    given = listed([f'"{name}"' for name in sets if name != _NONE], empty="no set is given")
    if _NONE in sets and len(sets) > 1:
        return f'"{_NONE}" together with {given}: remove one of them.'
    for operator, name in kept.items():
        if operator in replaced:
            return (
                f'"{replaced[operator]}" replaces {operator}, and "{name}" keeps it: remove one '
                "of them."
            )
    effective = {name for operator, name in kept.items() if operator in table}
    for name in kept.values():
        if name not in effective:
            return f'"{name}" keeps an operator that nothing replaces ({given}): remove it.'
    return None


def _split(name: str) -> tuple[str, str]:
    return (name[0], name[1:]) if name[:1] in ("+", "-") else ("", name)


def _core_aten() -> _Table:
    table: Any = torch.export.default_decompositions()
    return dict(table.items())


def _inductor() -> _Table:
    from torch._inductor.decomposition import select_decomp_table

    return dict(select_decomp_table().items())


# All operators outside core ATen; what Inductor would replace when it generates code.
_SETS: dict[str, Callable[[], _Table]] = {
    "core_aten": _core_aten,
    "inductor": _inductor,
    _NONE: dict,
}


def _every() -> _Table:
    """All decompositions that torch has; those of core ATen first."""
    return _inductor() | dict(decomposition_table.items()) | _core_aten()


def _by_name(operators: Iterable[Any]) -> dict[str, list[Any]]:
    """The operators of ``aten.gelu.default``, and all overloads of ``aten.gelu``."""
    known: dict[str, list[Any]] = {}
    for operator in operators:
        text = str(operator)
        known.setdefault(text, []).append(operator)
        if "." in text:
            known.setdefault(text.rpartition(".")[0], []).append(operator)
    return known


def _unknown(name: str, rest: str, known: Mapping[str, Any]) -> str:
    grammar = _GRAMMAR.format(sets=listed(f'"{one}"' for one in _SETS))
    if _exists(rest):
        return (
            f'"{name}": torch has no decomposition of {rest}, so programs call it as it is: '
            "remove the entry."
        )
    close = did_you_mean(rest, sorted([*known, *_SETS]))
    return f'"{name}" is no operator of PyTorch and no set{close}. {grammar}.'


def _exists(name: str) -> bool:
    """Whether PyTorch has the operator, or one with an overload of this name."""
    namespace, _, path = name.partition(".")
    operator, _, overload = path.partition(".")
    if namespace not in ("aten", "prims") or not operator.isidentifier():
        return False
    packet = getattr(getattr(torch.ops, namespace), operator, None)
    return packet is not None and (not overload or overload in packet.overloads())
