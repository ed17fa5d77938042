"""A frozen program in a source tree: what its files are, and how they are read and written.

A folder ``NAME.frozen`` holds ``graph.json`` (the graph, laid out for reviews), ``manifest.json``
and ``weights.json`` (digests of the weights, and where to fetch them); the weights themselves,
``weights.safetensors``, only where somebody asked for them. This module needs the standard library
only.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import shutil
import struct
from pathlib import Path
from typing import Any

from aoti_driver import graph_text
from aoti_driver.errors import DriverError
from aoti_driver.manifest import Manifest, ManifestError

GRAPH = "graph.json"
MANIFEST = "manifest.json"
WEIGHTS_INFO = "weights.json"
WEIGHTS = "weights.safetensors"

_FORMAT = 1
_CHUNK = 1 << 20


@dataclasses.dataclass(frozen=True)
class WeightsInfo:
    """``weights.json``: which file of weights the program was frozen with.

    tensors: the SHA-256 of each tensor's bytes, so that a comparison can name those that differ.
    """

    sha256: str
    size: int
    url: str
    tensors: dict[str, str]

    def to_json(self) -> str:
        document = {"format": _FORMAT, **dataclasses.asdict(self)}
        return json.dumps(document, indent=2, sort_keys=True) + "\n"

    @staticmethod
    def from_json(text: str, where: str) -> WeightsInfo:
        try:
            data = json.loads(text)
            if data["format"] != _FORMAT:
                raise DriverError(
                    f"{where}: format {data['format']!r}, this rules_aoti reads {_FORMAT}"
                )
            return WeightsInfo(
                str(data["sha256"]),
                int(data["size"]),
                str(data["url"]),
                {str(k): str(v) for k, v in data["tensors"].items()},
            )
        except (ValueError, KeyError, TypeError, AttributeError) as e:
            raise DriverError(
                f"{where}: this is not what `bazel run` of a .freeze target writes "
                f"({type(e).__name__}: {e})"
            ) from None

    def place(self) -> str:
        """Where to get the file, as the end of a message."""
        where = f", from {self.url}" if self.url else ""
        return f"sha256 {self.sha256}, {self.size:,} bytes{where}"


def digest(path: str | Path) -> tuple[str, int]:
    """(SHA-256, size) of a file."""
    sha256 = hashlib.sha256()
    size = 0
    with open(path, "rb") as f:
        while chunk := f.read(_CHUNK):
            sha256.update(chunk)
            size += len(chunk)
    return sha256.hexdigest(), size


def read_header(path: str | Path, where: str) -> tuple[dict[str, Any], int]:
    """A safetensors file's table of tensors, and where their bytes begin."""
    header, begin = _read_header(path, where)
    header.pop("__metadata__", None)
    return header, begin


def read_metadata(path: str | Path, where: str) -> dict[str, str]:
    """The texts that a safetensors file carries beside its tensors."""
    metadata = _read_header(path, where)[0].get("__metadata__")
    return metadata if isinstance(metadata, dict) else {}


def copy_with_metadata(source: str | Path, target: Path, metadata: dict[str, str]) -> None:
    """Copies a safetensors file. Its tensors stay aligned to 64 bytes."""
    if not metadata:
        shutil.copyfile(source, target)
        return
    header, begin = _read_header(source, Path(source).name)
    text = json.dumps({"__metadata__": metadata, **header}, separators=(",", ":")).encode()
    text += b" " * (-(8 + len(text)) % 64)
    with open(source, "rb") as old, target.open("wb") as new:
        new.write(struct.pack("<Q", len(text)))
        new.write(text)
        old.seek(begin)
        shutil.copyfileobj(old, new, _CHUNK)


def _read_header(path: str | Path, where: str) -> tuple[dict[str, Any], int]:
    path = Path(path)
    size = path.stat().st_size
    with path.open("rb") as f:
        start = f.read(8)
        length = struct.unpack("<Q", start)[0] if len(start) == 8 else size
        if length > size - 8:
            raise DriverError(f"{where}: this is no safetensors file")
        try:
            header = json.loads(f.read(length))
            for name, entry in header.items():
                if name == "__metadata__":
                    continue
                begin, end = entry["data_offsets"]
                if not (0 <= begin <= end <= size - 8 - length):
                    raise DriverError(f"{where}: this safetensors file is cut off")
                entry["dtype"], entry["shape"]
        except (ValueError, KeyError, TypeError, AttributeError):
            raise DriverError(f"{where}: this is no safetensors file") from None
    return header, 8 + length


def describe_weights(path: str | Path, where: str, url: str = "") -> WeightsInfo:
    """What :class:`WeightsInfo` says of a weights file."""
    table, begin = read_header(path, where)
    tensors = {}
    with open(path, "rb") as f:
        for name, entry in table.items():
            first, end = entry["data_offsets"]
            f.seek(begin + first)
            sha256 = hashlib.sha256()
            left = end - first
            while left:
                chunk = f.read(min(left, _CHUNK))
                sha256.update(chunk)
                left -= len(chunk)
            tensors[name] = sha256.hexdigest()
    sha256_of_file, size = digest(path)
    return WeightsInfo(sha256_of_file, size, url, tensors)


def read_manifest(path: str | Path, where: str) -> Manifest:
    try:
        return Manifest.from_json(Path(path).read_text(encoding="utf-8"))
    except (ManifestError, UnicodeDecodeError) as e:
        raise DriverError(
            f"{where}: {e}\n  Freeze the program anew with this version of rules_aoti: bazel run "
            "the .freeze target of the model."
        ) from None


def read_graph(path: str | Path, where: str) -> tuple[dict[str, Any], str]:
    """(the graph's document, the SHA-256 of the bytes that the build compiles)."""
    try:
        document = json.loads(Path(path).read_text(encoding="utf-8"))
        canonical = graph_text.canonical(document)
    except ValueError as e:
        raise DriverError(f"{where}: this is no graph: {e}") from None
    if not isinstance(document, dict) or "program" not in document:
        raise DriverError(f"{where}: this is no graph: it has no program")
    return document, hashlib.sha256(canonical.encode()).hexdigest()


def check_whole(manifest: Manifest, graph_sha256: str, where: str) -> None:
    """A graph and a manifest that were written together."""
    if manifest.graph_sha256 != graph_sha256:
        raise DriverError(
            f"{where}: {GRAPH} and {MANIFEST} do not belong together: the graph has sha256 "
            f"{graph_sha256}, the manifest was written for {manifest.graph_sha256}.\n"
            "  One of them was edited or merged by hand. Freeze the program anew (bazel run the "
            ".freeze target of the model), or restore both from one commit."
        )
