"""Checks that the generated parts of files match the tables, and that the tables are complete."""

import difflib
import re
from pathlib import Path
from typing import Any

import pytest

from tables import update

ROOT = Path(__file__).resolve().parents[2]
TABLES = update.load(ROOT)
NOTE = f"generated from {update.TABLES} by {update.COMMAND}"


def test_files_have_what_the_tables_say() -> None:
    for file, (text, wanted) in update.files(ROOT).items():
        difference = difflib.unified_diff(
            text.splitlines(), wanted.splitlines(), file, "the tables", lineterm=""
        )
        command = f"Write it with: {update.COMMAND}"
        lines = [f"{file} is not what the tables say.", *difference, command]
        assert text == wanted, "\n".join(lines)


def test_no_other_file_is_marked() -> None:
    """A file that the update doesn't know would not be updated."""
    folders = ("runtime", "rules", "toolchain")
    marked = {
        str(file.relative_to(ROOT))
        for folder in folders
        for file in (ROOT / folder).rglob("*")
        if file.suffix in (".bzl", ".cc", ".h", ".py") and f": {NOTE}" in file.read_text("utf-8")
    }
    assert marked == set(update.FILES)


@pytest.mark.parametrize("name", ["DTYPES", "INSIDE_DTYPES", "ABI_DTYPES", "ISAS"])
def test_rows_have_the_same_columns(name: str) -> None:
    columns = {tuple(row) for row in TABLES[name].values()}
    assert len(columns) == 1, f"{name}: {columns}"


def test_columns_are_described() -> None:
    for file, rows in (("dtypes", TABLES["DTYPES"]), ("isas", TABLES["ISAS"])):
        text = (ROOT / update.TABLES / f"{file}.bzl").read_text("utf-8")
        described = re.findall(r"^\| (\w+) \|", text, re.MULTILINE)
        assert described == ["column", "key", *next(iter(rows.values()))]


def test_dtypes_differ() -> None:
    every: dict[str, Any] = {}
    for name in ("DTYPES", "INSIDE_DTYPES", "ABI_DTYPES"):
        assert not every.keys() & TABLES[name].keys()
        every |= TABLES[name]
    for column in ("number", "schema", "enumerator", "cpp", "safetensors", "numpy", "format"):
        values = [row[column] for row in every.values() if row.get(column) is not None]
        assert len(values) == len(set(values)), column


def test_pages_name_all() -> None:
    inputs = (ROOT / "docs/inputs.md").read_text("utf-8")
    lists = re.findall(r"^(?:- \*\*dtype\*\*: |\| )((?:`\w+` ?){5,})", inputs, re.MULTILINE)
    assert len(lists) == 2
    for text in lists:
        assert set(re.findall(r"`(\w+)`", text)) == set(TABLES["DTYPES"])
    for page in ("docs/glossary.md", "docs/toolchain.md"):
        text = (ROOT / page).read_text("utf-8")
        assert all(f"`{isa}`" in text for isa in TABLES["ISAS"]), page


def test_a_part_is_written_with_the_indentation_of_its_marks() -> None:
    text = f"a\n  // BEGIN x: {NOTE}\n  old\n  // END x\nb\n# BEGIN y: {NOTE}\n# END y\n"
    wanted, names = update.rendered("f", text, {"x": ["1", "#if 2"], "y": []})
    assert wanted == text.replace("  old\n", "  1\n#if 2\n")
    assert names == ["x", "y"]


@pytest.mark.parametrize(
    ("begin", "message"),
    [
        (f"BEGIN z: {NOTE}", "f: no part is named z; there are x"),
        ("BEGIN x: by hand", f'f: what follows "BEGIN x: " must be "{NOTE}"'),
    ],
)
def test_wrong_marks_are_errors(begin: str, message: str) -> None:
    name = begin[6]
    with pytest.raises(update.TableError, match=re.escape(message)):
        update.rendered("f", f"// {begin}\n// END {name}\n", {"x": []})


def test_a_part_that_stands_nowhere_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(update, "FILES", update.FILES[1:])
    with pytest.raises(update.TableError, match=r"once: runtime_features, runtime_isas$"):
        update.files(ROOT)
