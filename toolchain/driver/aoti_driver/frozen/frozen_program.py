"""Reads and writes the files of a frozen program in a source tree.

A folder ``NAME.frozen`` has ``graph.json`` (the graph, formatted for reviews), ``manifest.json``
and ``weights.json`` (digests of the weights, and where to fetch them). The weights themselves,
``weights.safetensors``, are only there if the user asked for them. This module needs only the
standard library.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from pathlib import Path
from typing import Any

from aoti_driver.base import digests
from aoti_driver.base.errors import DriverError
from aoti_driver.contract.manifest import ProgramManifest
from aoti_driver.program import graph_text, safetensors_header

GRAPH = "graph.json"
MANIFEST = "manifest.json"
WEIGHTS_INFO = "weights.json"
WEIGHTS = "weights.safetensors"

_FORMAT = 1
_CHUNK = 1 << 20


@dataclasses.dataclass(frozen=True)
class WeightsInfo:
    """``weights.json``: identifies the weights file that the program was frozen with.

    tensors: the SHA-256 of each tensor's bytes, so that a comparison can name the tensors that
    differ.
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


def describe_weights(path: str | Path, where: str, url: str = "") -> WeightsInfo:
    """The :class:`WeightsInfo` of a weights file."""
    table, begin = safetensors_header.read_header(path, where)
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
    sha256_of_file, size = digests.of_file(path)
    return WeightsInfo(sha256_of_file, size, url, tensors)


def read_graph(path: str | Path, where: str) -> tuple[dict[str, Any], str]:
    """(the graph's document, the SHA-256 of the bytes that the build compiles)."""
    try:
        document = json.loads(Path(path).read_text(encoding="utf-8"))
        canonical = graph_text.canonical(document)
    except ValueError as e:
        raise DriverError(f"{where}: this is not a graph: {e}") from None
    if not isinstance(document, dict) or "program" not in document:
        raise DriverError(f"{where}: this is not a graph: it has no program")
    return document, hashlib.sha256(canonical.encode()).hexdigest()


def check_whole(manifest: ProgramManifest, graph_sha256: str, where: str) -> None:
    """Checks that a graph and a manifest were written together."""
    if manifest.graph_sha256 != graph_sha256:
        raise DriverError(
            f"{where}: {GRAPH} and {MANIFEST} do not belong together: the graph has sha256 "
            f"{graph_sha256}, the manifest was written for {manifest.graph_sha256}.\n"
            "  One of them was edited or merged by hand. Freeze the program anew (bazel run the "
            ".freeze target of the model), or restore both from one commit."
        )
