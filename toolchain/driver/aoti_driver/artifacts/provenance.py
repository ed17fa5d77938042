"""``provenance``: the inputs of a program, a library or weights, as digests.

It contains no time, path, user or machine: the same inputs give the same text. The part that
compiled code carries contains nothing about the weights, so that new weights compile nothing. This
module needs only the standard library.
"""

from __future__ import annotations

import argparse
import dataclasses
import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from aoti_driver.base import digests, files
from aoti_driver.contract import json_records
from aoti_driver.contract.manifest import LibraryManifest, ProgramManifest
from aoti_driver.contract.manifest_file import read_manifest
from aoti_driver.contract.request_spec import read_spec

FORMAT = 1

# The record in a .pt2: torch's loaders return "extra" records on request.
RECORD = "extra/aoti_provenance.json"
# The entry in a safetensors file's metadata.
METADATA = "aoti_provenance"
# The owner of the ELF note.
NOTE = "rules_aoti"

_DRIVER = Path(__file__).resolve().parents[1]


@dataclasses.dataclass(frozen=True)
class Spec:
    """The request; rules_aoti, python, triton: versions. Only CUDA code is generated with
    Triton.
    """

    label: str
    rules_aoti: str
    python: str
    triton: str = dataclasses.field(default="", metadata=json_records.OPTIONAL)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--spec", required=True, help="JSON: label, rules_aoti, python")
    parser.add_argument("--manifest", required=True)
    parser.add_argument("--lock", default="", help="the lock that torch was installed from")
    parser.add_argument("--weights", default="", help="the program's weights")
    parser.add_argument("--packed", default="", help="the same as the program reads them")
    parser.add_argument(
        "--operator_source",
        action="append",
        default=[],
        metavar="LABEL=NAME=PATH",
        help="a source of a torch_custom_ops target",
    )
    parser.add_argument("--out", required=True)


def run(args: argparse.Namespace) -> None:
    spec = read_spec(args.spec, Spec)
    manifest = read_manifest(args.manifest, ProgramManifest, LibraryManifest, who=spec.label)
    document = describe(spec, manifest, args.lock)
    if args.weights:
        document["weights"] = _file(args.weights)
    if args.packed:
        document["packed_weights"] = _file(args.packed)
    if args.operator_source:
        document["custom_ops"] = _custom_ops(args.operator_source)
    with files.outputs(args.out) as (out,):
        out.write_text(to_json(document), encoding="utf-8")


def to_json(document: Mapping[str, Any]) -> str:
    return json.dumps(document, indent=2, sort_keys=True) + "\n"


def describe(spec: Spec, manifest: ProgramManifest | LibraryManifest, lock: str) -> dict[str, Any]:
    """The part that does not depend on the weights."""
    toolchain = {
        "driver_sha256": driver_sha256(),
        "lock_sha256": digests.of_file(lock)[0] if lock else None,
        "python": spec.python,
    }
    program = manifest.program if isinstance(manifest, LibraryManifest) else manifest
    document: dict[str, Any] = {
        "format": FORMAT,
        "graph_sha256": program.graph_sha256,
        "model": spec.label,
        "rules_aoti": spec.rules_aoti,
        "toolchain": toolchain,
        "torch": program.torch_version,
    }
    if isinstance(manifest, LibraryManifest):
        document["code"] = {
            "device": ", ".join(manifest.devices),
            "isa": manifest.isas,
            "options": manifest.codegen.options,
            "runtime": manifest.shim,
        }
        if manifest.codegen.cuda:
            document["code"]["cuda_archs"] = list(manifest.codegen.cuda.archs)
            document["triton"] = spec.triton
    return document


def _custom_ops(entries: Sequence[str]) -> dict[str, dict[str, str]]:
    """For each torch_custom_ops target, the digests of its sources."""
    targets: dict[str, dict[str, str]] = {}
    for entry in entries:
        label, name, path = entry.split("=", 2)
        targets.setdefault(label, {})[name] = digests.of_file(path)[0]
    return targets


def driver_sha256() -> str:
    """The digest of the driver's sources, since the driver makes everything except compiled C++."""
    sha256 = hashlib.sha256()
    for path in sorted(_DRIVER.rglob("*.py"), key=lambda p: p.relative_to(_DRIVER).as_posix()):
        content = path.read_bytes()
        name = path.relative_to(_DRIVER).as_posix()
        sha256.update(f"{name}\0{len(content)}\0".encode())
        sha256.update(content)
    return sha256.hexdigest()


def _file(path: str) -> dict[str, Any]:
    sha256, size = digests.of_file(path)
    return {"sha256": sha256, "size": size}


def with_weights(code: str, weights: str) -> str:
    """The provenance of code (a file) and of the weights that are packed for it, on one line."""
    document = json.loads(Path(code).read_text(encoding="utf-8"))
    document["weights"] = _file(weights)
    return json.dumps(document, sort_keys=True, separators=(",", ":"))


@dataclasses.dataclass(frozen=True)
class Line:
    name: str
    value: str


def readable(document: Mapping[str, Any]) -> str:
    """The text for people."""
    lines = [
        Line("rules_aoti", document["rules_aoti"]),
        Line("torch", document["torch"]),
        Line("graph", f"sha256 {document['graph_sha256']}"),
    ]
    if triton := document.get("triton"):
        lines.insert(2, Line("triton", triton))
    for key, title in (("weights", "weights"), ("packed_weights", "weights as packed")):
        if entry := document.get(key):
            size = f", {entry['size']:,} bytes" if "size" in entry else ""
            lines.append(Line(title, f"sha256 {entry['sha256']}{size}"))
    if code := document.get("code"):
        lines.append(Line("instruction set", f"{code['isa']} ({code['device']})"))
        if archs := code.get("cuda_archs"):
            lines.append(Line("GPUs", ", ".join(archs)))
        lines.append(Line("runtime", code["runtime"]))
        lines += [Line(f"option {name}", value) for name, value in sorted(code["options"].items())]
    for target, sources in sorted(document.get("custom_ops", {}).items()):
        lines += [
            Line(f"operators {target}", f"{name}, sha256 {sha256}")
            for name, sha256 in sorted(sources.items())
        ]
    toolchain = document["toolchain"]
    lock = toolchain["lock_sha256"]
    lines += [
        Line("lock file", f"sha256 {lock}" if lock else "none: torch was not installed from one"),
        Line("toolchain", f"sha256 {toolchain['driver_sha256']}, Python {toolchain['python']}"),
    ]
    width = max(len(line.name) for line in lines)
    rows = [f"  {line.name.ljust(width)}  {line.value}" for line in lines]
    return "\n".join([str(document["model"]), *rows])
