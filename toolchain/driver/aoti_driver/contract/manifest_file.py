"""Manifests as files: UTF-8, sorted keys, short lists on one line, trailing newline.

Beside the fields of its type, a document has ``schema_version`` and ``stage``. A reader refuses
documents of unknown versions, and of stages that it did not ask for.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar

from aoti_driver.base.errors import DriverError
from aoti_driver.contract import json_records
from aoti_driver.contract.json_records import RecordError
from aoti_driver.contract.manifest import (
    SCHEMA_VERSION,
    Manifest,
    ProgramManifest,
)

_WIDTH = 100

M = TypeVar("M", bound=Manifest)
Other = TypeVar("Other", bound=Manifest)


def to_json(manifest: Manifest) -> str:
    document = {
        "schema_version": SCHEMA_VERSION,
        "stage": manifest.STAGE,
        **json_records.plain(manifest),
    }
    return _laid_out(document, "") + "\n"


def _laid_out(value: Any, indent: str) -> str:
    """JSON in which sizes and shapes stay on one line."""
    line = json.dumps(value, sort_keys=True, allow_nan=False)
    if not value or not isinstance(value, (dict, list)):
        return line
    records = isinstance(value, dict) or any(isinstance(item, dict) for item in value)
    if not records and len(indent) + len(line) <= _WIDTH:
        return line
    inner = indent + "  "
    if isinstance(value, dict):
        items = [f"{json.dumps(key)}: {_laid_out(value[key], inner)}" for key in sorted(value)]
    else:
        items = [_laid_out(item, inner) for item in value]
    begin, end = "{}" if isinstance(value, dict) else "[]"
    return f"{begin}\n{inner}" + f",\n{inner}".join(items) + f"\n{indent}{end}"


def read_manifest(
    path: str | Path, stage: type[M], *others: type[Other], who: str = ""
) -> M | Other:
    """Reads the manifest in a file, which must have the given stage or one of the others.

    who: begins the message of the DriverError that is raised otherwise. Default: the path.
    """
    who = who or str(path)
    stages: list[type[Any]] = [stage, *others]
    try:
        content = Path(path).read_bytes()
    except OSError as e:
        raise DriverError(f"{who}: the manifest can't be read: {e.strerror}") from None
    data = None
    try:
        data = json.loads(content)
        manifest: M | Other = _from_document(data, stages)
        return manifest
    except RecordError as e:
        reason = str(e)
    except ValueError as e:
        reason = f"this is no manifest: {e}"
    raise DriverError(f"{who}: {reason}{_remedy(data, stages)}")


def _from_document(data: Any, stages: Sequence[type[Any]]) -> Any:
    if not isinstance(data, dict):
        raise RecordError(f"this is no manifest: expected an object, got {type(data).__name__}")
    version = data.get("schema_version")
    if version != SCHEMA_VERSION:
        raise RecordError(
            f"manifest has schema_version {version!r}, this rules_aoti reads {SCHEMA_VERSION}"
        )
    found = data.get("stage")
    for stage in stages:
        if found == stage.STAGE:
            fields = {k: v for k, v in data.items() if k not in ("schema_version", "stage")}
            return json_records.build(stage, fields, "manifest")
    expected = " or ".join(f'"{stage.STAGE}" (the output of {stage.WRITER})' for stage in stages)
    raise RecordError(f"manifest of stage {json.dumps(found)} where stage {expected} is expected")


def _remedy(data: Any, stages: Sequence[type[Any]]) -> str:
    """Advice for frozen programs, which may be older than the version that reads them."""
    if ProgramManifest not in stages:
        return ""
    label = data.get("label") if isinstance(data, dict) else None
    target = f"{label}.freeze" if isinstance(label, str) else "the .freeze target of the model"
    return (
        "\n  Freeze the program anew with this version of rules_aoti, if it is a frozen one: "
        f"bazel run {target}"
    )
