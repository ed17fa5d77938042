"""The ``ops`` subcommand: which operators a program calls, where, and what computes them."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from aoti_driver.artifacts.missing_functions import find_missing, parse_dtypes
from aoti_driver.base import files
from aoti_driver.base.errors import plural
from aoti_driver.contract import source_locations
from aoti_driver.contract.manifest import LibraryManifest
from aoti_driver.contract.manifest_file import read_manifest
from aoti_driver.contract.namespaces import is_own
from aoti_driver.contract.source_locations import Location
from aoti_driver.contract.torch_version import public_version
from aoti_driver.program import operator_calls
from aoti_driver.program.operator_calls import OperatorCall

_GENERATED = "generated"
_PLACES = 3
_LEGEND = f"""
{_GENERATED}: in a kernel that the build writes for this model; views and checks have no code.
The other entries are functions that the generated code calls.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--graph", required=True)
    parser.add_argument("--manifest", required=True, help="the library's")
    parser.add_argument("--locations", type=Path, help="graph node -> source line")
    parser.add_argument("--functions", required=True, type=Path, help="what slim has")
    parser.add_argument("--dtypes", required=True, type=Path, help="and for which dtypes")
    parser.add_argument("--out", required=True)


def run(args: argparse.Namespace) -> None:
    library = read_manifest(args.manifest, LibraryManifest)
    locations = {}
    if args.locations is not None:
        locations = source_locations.from_json(args.locations.read_text(encoding="utf-8"))
    missing = find_missing(
        library.codegen.shims,
        set(args.functions.read_text(encoding="utf-8").split()),
        parse_dtypes(args.dtypes.read_text(encoding="utf-8")),
        {},
    )
    lacking = {one.function for one in missing}
    text = render(library, operator_calls.read(args.graph), locations, lacking)
    with files.outputs(args.out) as (out,):
        out.write_text(text, encoding="utf-8")


def render(
    library: LibraryManifest,
    calls: Sequence[OperatorCall],
    locations: Mapping[str, Location],
    lacking: set[str],
) -> str:
    """The table's text. lacking: the functions that the slim runtime doesn't have."""
    program = library.program
    groups: dict[tuple[str, str], list[OperatorCall]] = {}
    for call in sorted(calls, key=lambda one: (one.operator, one.dtypes)):
        groups.setdefault((call.operator, call.dtypes), []).append(call)
    servers = _servers(library, lacking)
    rows = [("operator", "result", "calls", library.codegen.device, "source")]
    for (operator, dtypes), group in groups.items():
        served = Counter(servers.get(call.node, _GENERATED) for call in group)
        rows.append((operator, dtypes, str(len(group)), _shares(served), _source(group, locations)))
    operators = len({operator for operator, _ in groups})
    title = (
        f"{program.label}: {plural(operators, 'operator')} in {plural(len(calls), 'call')}, torch "
        f"{public_version(program.torch_version)}, {library.isas}, runtime {library.shim}"
    )
    return "\n".join([title, "", *_columns(rows)]) + "\n" + _LEGEND


def _servers(library: LibraryManifest, lacking: set[str]) -> dict[str, str]:
    """For each node of the graph that a function is called for: the function, and whose it is."""
    functions: dict[str, list[str]] = {}
    for shim in library.codegen.shims:
        if is_own(shim.name) and shim.name in lacking:
            text = f"custom op {shim.name}"
        else:
            text = f"{library.shim} {shim.name}"
            text += " (slim has none)" if shim.name in lacking else ""
        for node in shim.nodes:
            functions.setdefault(node, []).append(text)
    return {node: ", ".join(names) for node, names in functions.items()}


def _shares(served: Counter[str]) -> str:
    if len(served) == 1:
        return next(iter(served))
    return ", ".join(f"{name} ({count})" for name, count in sorted(served.items()))


def _source(group: Sequence[OperatorCall], locations: Mapping[str, Location]) -> str:
    found = [locations[call.node] for call in group if call.node in locations]
    places = list(dict.fromkeys(f"{place.file}:{place.line}" for place in found))
    more = len(places) - _PLACES
    return ", ".join(places[:_PLACES]) + (f" and {plural(more, 'more line')}" if more > 0 else "")


def _columns(rows: Sequence[tuple[str, ...]]) -> list[str]:
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return [
        "  ".join(
            cell.rjust(width) if i == 2 else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
