"""The list of a model's operators in the source tree: ``ops_diff`` compares it with the program,
``ops_update`` writes it. They need only the standard library.

A line is an operator, the dtypes of its results and the number of calls. It has no lines of the
source, which change with every edit, and nothing that depends on the instruction set or runtime.
"""

from __future__ import annotations

import argparse
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from aoti_driver.base import source_tree
from aoti_driver.base.errors import DriverError, listed, plural
from aoti_driver.contract.manifest import ProgramManifest
from aoti_driver.contract.manifest_file import read_manifest
from aoti_driver.contract.torch_version import public_version
from aoti_driver.program import operator_calls

_LINE = re.compile(r"(?P<operator>\S+)  (?P<dtypes>\S.*?)  (?P<calls>\d+)")
_TORCH = re.compile(r"# torch (\S+)")
_SHOWN = 60

# (program's name, operator, dtypes) -> calls. The name is that of a method, or empty.
_Operators = Mapping[tuple[str, str, str], int]


def _add_programs(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--label", required=True, help="the model's")
    parser.add_argument("--update", required=True, help="the target that writes the list")
    parser.add_argument("--path", required=True, help="the list's path in the workspace")
    for flag, text in (("name", "the method's, or empty"), ("graph", ""), ("manifest", "")):
        parser.add_argument(f"--{flag}", action="append", default=[], help=text)


def add_diff_arguments(parser: argparse.ArgumentParser) -> None:
    _add_programs(parser)
    parser.add_argument("--lock", type=Path, help="none if there is no such file")


def add_update_arguments(parser: argparse.ArgumentParser) -> None:
    _add_programs(parser)
    parser.add_argument("--repository", default="", help="empty: the main one")
    parser.add_argument("--package", required=True)
    parser.add_argument("--workspace", default="", help="what `bazel run` says")
    parser.add_argument("--working_directory", default="")


def run_diff(args: argparse.Namespace) -> None:
    update = f"bazel run {args.update}"
    if args.lock is None:
        raise DriverError(
            f"{args.label}: ops_lock: there is no file {args.path}. Write it: {update}, and commit "
            "it."
        )
    locked, version = parse(args.lock.read_text(encoding="utf-8"), args.path, update)
    found = _operators(args.name, args.graph)
    lines = differences(locked, found)
    if not lines:
        print(f"{args.label}: the operators are those of {args.path}")
        return
    text = [f"{args.label}: the operators are no longer those of {args.path} (-list, +program):"]
    now = _version(args.manifest)
    if version and version != now:
        text.append(f"  The list was written with torch {version}, and this is torch {now}.")
    text += [f"  {line}" for line in lines[:_SHOWN]]
    if len(lines) > _SHOWN:
        text.append(f"  ... and {plural(len(lines) - _SHOWN, 'line')} more")
    text.append(
        f"If the change is wanted: {update}, and commit what it writes. `bazel run "
        f"{args.update.removesuffix('.update')}` prints the lines of the source that call each "
        "operator."
    )
    raise DriverError("\n".join(text))


def run_update(args: argparse.Namespace) -> None:
    folder = source_tree.package_folder(args.update, args.workspace, args.repository, args.package)
    found = _operators(args.name, args.graph)
    text = render(found, args.label, args.update, _version(args.manifest))
    path = folder / Path(args.path).relative_to(args.package)
    before = path.read_text(encoding="utf-8") if path.is_file() else None
    if text == before:
        print(f"{args.update}: {args.path}: as it was")
        return
    try:
        source_tree.install({path: lambda part: part.write_text(text, encoding="utf-8")})
    except OSError as e:
        raise DriverError(
            f"{args.update}: can't write {args.path}: {e.strerror}; nothing was changed"
        ) from None
    print(f"{args.update}: {args.path}: {plural(len(found), 'line')}, written")


def _operators(names: Sequence[str], graphs: Sequence[str]) -> _Operators:
    found: Counter[tuple[str, str, str]] = Counter()
    for name, graph in zip(names, graphs, strict=True):
        found.update((name, call.operator, call.dtypes) for call in operator_calls.read(graph))
    return found


def _version(manifests: Sequence[str]) -> str:
    versions = (read_manifest(path, ProgramManifest).torch_version for path in manifests)
    return listed(sorted({public_version(version) for version in versions}))


def render(operators: _Operators, label: str, update: str, version: str) -> str:
    lines = [f"# The operators of {label}, written by: bazel run {update}", f"# torch {version}"]
    section = ""
    for (name, operator, dtypes), calls in sorted(operators.items()):
        if name != section:
            lines.append(f"[{name}]")
            section = name
        lines.append(f"{operator}  {dtypes}  {calls}")
    return "\n".join(lines) + "\n"


def parse(text: str, path: str, update: str) -> tuple[_Operators, str]:
    """The operators of a list, and the version of torch that it was written with, if it says so."""
    operators: dict[tuple[str, str, str], int] = {}
    version = section = ""
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("#") or not line.strip():
            match = _TORCH.fullmatch(line)
            version = match[1] if match else version
        elif line.startswith("[") and line.endswith("]"):
            section = line[1:-1]
        elif match := _LINE.fullmatch(line):
            operators[section, match["operator"], match["dtypes"]] = int(match["calls"])
        else:
            raise DriverError(
                f'{path}:{number}: "{line}" is no line of a list of operators, such as '
                f'"aten.mul.Tensor  float32  2". Write the file anew: {update}'
            )
    return operators, version


def differences(old: _Operators, new: _Operators) -> list[str]:
    lines = []
    for key in sorted({*old, *new}):
        before, after = old.get(key), new.get(key)
        if before != after:
            name, operator, dtypes = key
            text = f"{f'[{name}] ' if name else ''}{operator}  {dtypes}"
            lines += [f"-{text}  {before}"] if before is not None else []
            lines += [f"+{text}  {after}"] if after is not None else []
    return lines
