"""``frozen_diff``: compares the program that the source exports with the frozen program.

The test of ``NAME.frozen_test``. It needs only the standard library.
"""

from __future__ import annotations

import argparse
import difflib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from aoti_driver.base.errors import DriverError, plural
from aoti_driver.contract import json_records
from aoti_driver.contract.manifest import ProgramManifest
from aoti_driver.contract.manifest_file import read_manifest
from aoti_driver.contract.torch_version import public_version
from aoti_driver.frozen import frozen_program
from aoti_driver.program import graph_text

_SHOWN = 120
_CONTEXT = 2


def add_arguments(parser: argparse.ArgumentParser) -> None:
    for flag in ("--graph", "--weights", "--manifest"):
        parser.add_argument(flag, required=True, help="what the source exports now")
        parser.add_argument(f"--frozen_{flag[2:]}", required=True, help="what was frozen")
    parser.add_argument("--label", required=True)
    parser.add_argument("--freeze", required=True, help="the target that freezes anew")


def run(args: argparse.Namespace) -> None:
    label = args.label
    old_document, old_sha256 = frozen_program.read_graph(
        args.frozen_graph, f"{label}: {frozen_program.GRAPH}"
    )
    old_manifest = read_manifest(
        args.frozen_manifest, ProgramManifest, who=f"{label}: {frozen_program.MANIFEST}"
    )
    frozen_program.check_whole(old_manifest, old_sha256, label)
    old_weights = frozen_program.WeightsInfo.from_json(
        Path(args.frozen_weights).read_text(encoding="utf-8"),
        f"{label}: {frozen_program.WEIGHTS_INFO}",
    )
    new_document, _ = frozen_program.read_graph(args.graph, label)
    new_manifest = read_manifest(args.manifest, ProgramManifest, who=label)
    new_weights = frozen_program.describe_weights(args.weights, label)

    sections = [
        ("manifest", manifest_differences(_plain(old_manifest), _plain(new_manifest))),
        ("graph", graph_differences(old_document, new_document)),
        ("weights", weights_differences(old_weights, new_weights)),
    ]
    found = {title: lines for title, lines in sections if lines}
    if not found:
        print(f"{label}: the source exports the frozen program")
        return
    text = [f"{label}: the source no longer exports the program that is frozen:"]
    old_torch, new_torch = old_manifest.torch_version, new_manifest.torch_version
    if public_version(old_torch) != public_version(new_torch):
        text.append(f"  It was frozen by torch {old_torch}, and is exported by {new_torch} now.")
    for title, lines in found.items():
        text.append(f"{title} (-frozen, +source):")
        text += [f"  {line}" for line in lines[:_SHOWN]]
        if len(lines) > _SHOWN:
            text.append(f"  ... and {plural(len(lines) - _SHOWN, 'line')} more")
    text.append(
        f"If the source is right: bazel run {args.freeze}, and commit what it writes. "
        "If the frozen program is right: undo the change in the source."
    )
    raise DriverError("\n".join(text))


def _plain(manifest: ProgramManifest) -> dict[str, Any]:
    data: dict[str, Any] = json_records.plain(manifest, size=str)
    # The graph's differences are shown separately, and torch's version is shown before all of them.
    del data["graph_sha256"], data["torch_version"]
    return data


def manifest_differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    return list(_differences(old, new, ""))


def _differences(old: Any, new: Any, where: str) -> Iterator[str]:
    if isinstance(old, list) and isinstance(new, list):
        old_items, new_items = _named(old), _named(new)
        if old_items is not None and new_items is not None:
            if list(old_items) != list(new_items) and sorted(old_items) == sorted(new_items):
                yield f"-{where}: in the order {', '.join(old_items)}"
                yield f"+{where}: in the order {', '.join(new_items)}"
            old, new = old_items, new_items
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for key in [*old, *(k for k in new if k not in old)]:
            place = f"{where}.{key}" if where else key
            if key not in new:
                yield f"-{place}: {_shown(old[key])}"
            elif key not in old:
                yield f"+{place}: {_shown(new[key])}"
            else:
                yield from _differences(old[key], new[key], place)
    elif old != new:
        yield f"-{where}: {_shown(old)}"
        yield f"+{where}: {_shown(new)}"


def _named(items: list[Any]) -> dict[str, Any] | None:
    """A list of things with names, as a dict by name; None for other lists."""
    if not all(isinstance(item, dict) and "name" in item for item in items):
        return None
    named = {item["name"]: {k: v for k, v in item.items() if k != "name"} for item in items}
    return named if len(named) == len(items) else None


def _shown(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(_shown(item) for item in value)}]"
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_shown(item)}" for key, item in value.items())
    return value if isinstance(value, str) else json.dumps(value)


def graph_differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    if old == new:
        return []
    readable = _unified(graph_text.readable(old), graph_text.readable(new))
    if readable:
        return readable
    # The graphs differ in metadata, such as the names of submodules, which only the files show.
    return _unified(graph_text.pretty(old).splitlines(), graph_text.pretty(new).splitlines())


def _unified(old: list[str], new: list[str]) -> list[str]:
    lines = difflib.unified_diff(old, new, n=_CONTEXT, lineterm="")
    return [line for line in lines if not line.startswith(("--- ", "+++ "))]


def weights_differences(
    old: frozen_program.WeightsInfo, new: frozen_program.WeightsInfo
) -> list[str]:
    if old.sha256 == new.sha256:
        return []
    lines = [f"-{name}" for name in old.tensors if name not in new.tensors]
    lines += [f"+{name}" for name in new.tensors if name not in old.tensors]
    both = [name for name in old.tensors if name in new.tensors]
    changed = [name for name in both if old.tensors[name] != new.tensors[name]]
    lines += [f" {name}: other values" for name in changed]
    return [f"-sha256 {old.sha256}", f"+sha256 {new.sha256}", *lines]
