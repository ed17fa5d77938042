"""``info``: prints the provenance of a model, or the provenance in a built file.

Run by ``bazel run //models:encoder.info [-- FILE]``. It needs only the standard library.
"""

from __future__ import annotations

import argparse
import json
import struct
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from aoti_driver.artifacts import provenance
from aoti_driver.base.errors import DriverError
from aoti_driver.program import safetensors_header

_ELF = b"\x7fELF"
_ARCHIVE = b"!<arch>\n"
_ZIP = b"PK\x03\x04"
_NOTE_SEGMENT = 4
_NOTE_SECTION = 7


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--provenance", required=True)
    parser.add_argument("--workspace", default="")
    parser.add_argument("--working_directory", default="")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("files", nargs="*")


def run(args: argparse.Namespace) -> None:
    if args.files:
        documents = [
            document
            for name in args.files
            for document in of_file(Path(args.working_directory, name), name)
        ]
    else:
        documents = [json.loads(Path(args.provenance).read_text(encoding="utf-8"))]
    if args.json:
        for document in documents:
            print(provenance.to_json(document), end="")
    else:
        print("\n\n".join(provenance.readable(document) for document in documents))


def of_file(path: Path, shown: str) -> list[dict[str, Any]]:
    """All different provenances in a file; a binary has one for each of its models."""
    try:
        texts = list(_texts(path))
    except OSError as e:
        raise DriverError(f"{shown}: can't be read: {e.strerror}") from None
    except (zipfile.BadZipFile, struct.error, ValueError):
        raise DriverError(f"{shown}: the file is damaged") from None
    documents: list[dict[str, Any]] = []
    for text in texts:
        document = json.loads(text)
        if document.get("format") != provenance.FORMAT:
            raise DriverError(
                f"{shown}: provenance of format {document.get('format')!r}, this rules_aoti reads "
                f"{provenance.FORMAT}"
            )
        if document not in documents:
            documents.append(document)
    if not documents:
        raise DriverError(
            f"{shown}: no provenance of rules_aoti is in this file. It is in what aoti_library "
            "makes (lib*.so, Python modules, .pt2 files, packed weights), in binaries that are "
            "linked with it, and in NAME.provenance.json."
        )
    return documents


def _texts(path: Path) -> Iterator[str | bytes]:
    with path.open("rb") as f:
        start = f.read(8)
    if start.startswith(_ELF):
        yield from _elf_notes(path.read_bytes())
    elif start == _ARCHIVE:
        for member in _members(path.read_bytes()):
            if member.startswith(_ELF):
                yield from _elf_notes(member)
    elif start.startswith(_ZIP):
        with zipfile.ZipFile(path) as archive:
            for name in archive.namelist():
                if name.endswith(f"/{provenance.RECORD}"):
                    yield archive.read(name)
    elif path.suffix == ".json":
        document = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(document, dict) and "rules_aoti" in document and "graph_sha256" in document:
            yield json.dumps(document)
    elif path.suffix == ".safetensors":
        metadata = safetensors_header.read_metadata(path, path.name)
        for key, text in metadata.items():  # one for each method, where there are several
            if key == provenance.METADATA or key.startswith(f"{provenance.METADATA}."):
                yield text


def _members(archive: bytes) -> Iterator[bytes]:
    at = len(_ARCHIVE)
    while at + 60 <= len(archive):
        size = int(archive[at + 48 : at + 58])
        yield archive[at + 60 : at + 60 + size]
        at += 60 + size + size % 2


def _elf_notes(elf: bytes) -> Iterator[bytes]:
    """The notes of rules_aoti: from segments, which stripping keeps, or from sections (in
    objects).
    """
    wide = elf[4] == 2
    order = "<" if elf[5] == 1 else ">"
    header = struct.unpack_from(order + ("HHIQQQIHHHHHH" if wide else "HHIIIIIHHHHHH"), elf, 16)
    segments, sections = header[4], header[5]
    segment_size, segment_count, section_size, section_count = header[8:12]
    found = False
    for i in range(segment_count):
        at = segments + i * segment_size
        if struct.unpack_from(order + "I", elf, at)[0] == _NOTE_SEGMENT:
            offset, size = _range(elf, order, at + (8 if wide else 4), wide)
            for note in _notes(elf[offset : offset + size], order):
                found = True
                yield note
    for i in range(0 if found else section_count):
        at = sections + i * section_size
        if struct.unpack_from(order + "I", elf, at + 4)[0] == _NOTE_SECTION:
            offset, size = struct.unpack_from(
                order + ("QQ" if wide else "II"), elf, at + (24 if wide else 16)
            )
            yield from _notes(elf[offset : offset + size], order)


def _range(elf: bytes, order: str, at: int, wide: bool) -> tuple[int, int]:
    """(offset, size in the file) of a segment; its offset is at position ``at``."""
    offset = struct.unpack_from(order + ("Q" if wide else "I"), elf, at)[0]
    size = struct.unpack_from(order + ("Q" if wide else "I"), elf, at + (24 if wide else 12))[0]
    return offset, size


def _notes(data: bytes, order: str) -> Iterator[bytes]:
    at = 0
    while at + 12 <= len(data):
        name_size, size, _ = struct.unpack_from(order + "III", data, at)
        name = data[at + 12 : at + 12 + name_size].rstrip(b"\0")
        at += 12 + name_size + -name_size % 4
        if name == provenance.NOTE.encode():
            yield data[at : at + size].rstrip(b"\0")
        at += size + -size % 4
