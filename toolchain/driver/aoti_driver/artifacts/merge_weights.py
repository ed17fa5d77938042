"""The ``merge_weights`` subcommand: one weights file for the programs of several methods.

A tensor that several of them read is stored once. It is an error if they disagree about it.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import mmap
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from aoti_driver.artifacts import provenance
from aoti_driver.base import files
from aoti_driver.base.errors import DriverError
from aoti_driver.contract import method_weights
from aoti_driver.contract.manifest import LibraryManifest
from aoti_driver.contract.manifest_file import read_manifest
from aoti_driver.contract.request_spec import read_spec
from aoti_driver.packing import packed_format
from aoti_driver.program import safetensors_header


@dataclasses.dataclass(frozen=True)
class Spec:
    """methods: their names, in the order of the files."""

    label: str
    methods: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class _Stored:
    """A tensor in one of the files; name: the one that it gets."""

    name: str
    old_name: str
    dtype: str
    shape: list[int]
    data: memoryview
    method: str
    program: str

    @property
    def type(self) -> str:
        return f"{self.dtype}{self.shape}"

    def written(self) -> memoryview | bytes:
        if self.name == self.old_name or "#" not in self.name:
            return self.data
        return packed_format.renamed(self.name, self.data)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--spec", required=True)
    for flag in ("--manifest", "--weights"):
        parser.add_argument(flag, action="append", default=[], help="of each method")
    parser.add_argument("--out", required=True)


def run(args: argparse.Namespace) -> None:
    spec = read_spec(args.spec, Spec)
    merged: dict[str, _Stored] = {}
    metadata: dict[str, str] = {}
    for method, manifest, weights in zip(spec.methods, args.manifest, args.weights, strict=True):
        library = read_manifest(manifest, LibraryManifest)
        own = safetensors_header.read_metadata(weights, library.program.label)
        if provenance.METADATA in own:
            metadata[f"{provenance.METADATA}.{method}"] = own[provenance.METADATA]
        for tensor in _tensors(weights, method, library):
            known = merged.setdefault(tensor.name, tensor)
            if (known.type, known.data) != (tensor.type, tensor.data):
                raise DriverError(_disagreement(spec.label, known, tensor))
    with files.outputs(args.out) as (out,):
        _write(out, merged, metadata)


def _tensors(path: str, method: str, library: LibraryManifest) -> Iterator[_Stored]:
    where = library.program.label
    header, begin = safetensors_header.read_header(path, where)
    if not header:
        return
    with open(path, "rb") as f:
        content = memoryview(mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_READ))[begin:]
    packed = {p.name: p for p in library.codegen.packed}
    for name, entry in header.items():
        if name in packed:
            source, kind = packed[name].source, packed[name].kind
            new_name = f"{method_weights.shared_name(method, source)}#{kind}"
        else:
            new_name = method_weights.shared_name(method, name)
        first, end = entry["data_offsets"]
        data = content[first:end]
        yield _Stored(new_name, name, entry["dtype"], entry["shape"], data, method, where)


def _disagreement(label: str, one: _Stored, other: _Stored) -> str:
    if one.type == other.type:
        differ = f"have other values in {one.method} ({one.program}) than in {other.method}"
        differ = f'the elements of "{one.name}" {differ} ({other.program})'
    else:
        differ = (
            f'"{one.name}" is {one.type} in {one.method} ({one.program}), and {other.type} in '
            f"{other.method} ({other.program})"
        )
    return (
        f"{label}: {differ}. Methods share tensors by name: export both from the same module and "
        "weights, or rename the tensor in one of them."
    )


def _write(path: Path, tensors: dict[str, _Stored], metadata: dict[str, str]) -> None:
    order = safetensors_header.aligned_order((n, len(t.data)) for n, t in tensors.items())
    header: dict[str, Any] = {"__metadata__": metadata} if metadata else {}
    end = 0
    for name in order:
        tensor = tensors[name]
        begin, end = end, end + len(tensor.data)
        entry = {"dtype": tensor.dtype, "shape": tensor.shape, "data_offsets": [begin, end]}
        header[name] = entry
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-(8 + len(text)) % safetensors_header.ALIGNMENT)
    with path.open("wb") as f:
        f.write(struct.pack("<Q", len(text)))
        f.write(text)
        for name in order:
            f.write(tensors[name].written())
