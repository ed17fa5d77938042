"""manifest.md describes every field of the schema, and no other."""

import dataclasses
import re
from pathlib import Path

from aoti_driver.contract import code_parts, manifest, program_parts, result_tree, tiles

PAGE = Path(__file__).parent / "manifest.md"


def documented() -> dict[str, set[str]]:
    sections: dict[str, set[str]] = {}
    for section in PAGE.read_text(encoding="utf-8").split("\n## ")[1:]:
        title, _, text = section.partition("\n")
        rows = re.findall(r"^\| (`[^|]*`) \|", text, re.MULTILINE)
        if rows:
            sections[title] = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    return sections


def test_all_fields() -> None:
    schema = {
        cls.__name__: {field.name for field in dataclasses.fields(cls)}
        for module in (manifest, program_parts, code_parts, result_tree, tiles)
        for cls in vars(module).values()
        if isinstance(cls, type) and dataclasses.is_dataclass(cls)
        if cls.__module__ == module.__name__
    }
    assert documented() == schema
