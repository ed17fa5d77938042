"""Tuning files: what is read, written and refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from aoti_driver.base.errors import DriverError
from aoti_driver.contract.tiles import Tile
from aoti_driver.cuda import tuning_file
from aoti_driver.cuda.archs import ARCHS
from aoti_driver.cuda.tiles import Product, Sizes, exactly

LINEAR = Product("addmm", Sizes(1, 64), exactly(16), exactly(8), "float32", 4)
TILES = (Tile(16, 16, 16, 3, 1, rows=16), Tile(64, 16, 16, 3, 4))
DOCUMENT = tuning_file.Document(1, {"sm_80": tuning_file.Measured("A100", {LINEAR.key: TILES})})


def read(tmp_path: Path, text: str, *names: str) -> tuning_file.Tuning:
    path = tmp_path / "x.tuning.json"
    path.write_text(text, encoding="utf-8")
    return tuning_file.read(str(path), [ARCHS[name] for name in names or ("sm_80",)])


def changed(path: str, value: Any) -> str:
    """The document with another value at a path such as "archs/sm_80/gpu"."""
    document = json.loads(tuning_file.write(DOCUMENT))
    *folders, name = path.split("|")
    place = document
    for folder in folders:
        place = place[int(folder) if isinstance(place, list) else folder]
    place[int(name) if isinstance(place, list) else name] = value
    return json.dumps(document)


def test_what_is_written_is_read(tmp_path: Path) -> None:
    text = tuning_file.write(DOCUMENT)
    assert tuning_file.parse(text, "x") == DOCUMENT
    assert text == tuning_file.write(tuning_file.parse(text, "x"))
    found = read(tmp_path, text)
    assert found.of(LINEAR) == TILES
    found.refuse_unused()


def test_the_lowest_architecture_that_was_measured(tmp_path: Path) -> None:
    text = tuning_file.write(DOCUMENT)
    assert read(tmp_path, text, "sm_75", "sm_80", "sm_90").of(LINEAR) == TILES
    with pytest.raises(DriverError, match=r"measured on sm_80, but .* are sm_86, sm_90; run its"):
        read(tmp_path, text, "sm_86", "sm_90")


def test_what_was_not_measured(tmp_path: Path) -> None:
    other = Product("mm", exactly(3), exactly(16), exactly(8), "float32", 4)
    found = read(tmp_path, tuning_file.write(DOCUMENT))
    assert found.of(other) is None
    with pytest.raises(
        DriverError, match=r'"addmm .* float32" is no product of this model.*\.tune'
    ):
        found.refuse_unused()


FIRST = f"archs|sm_80|products|{LINEAR.key}|0"


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("{", r"x.tuning.json: no JSON: .*\. Write the file with the model's target .tune"),
        ("[]", r"x.tuning.json: expected an object, got list"),
        (changed("times", 3), r"x.tuning.json: unknown field 'times'"),
        (changed("format", 2), r"x.tuning.json: format 2; this version reads 1"),
        (
            changed("archs|sm_81", {"gpu": "", "products": {}}),
            r'unknown architecture "sm_81" \(did you mean "sm_89"\?\); known are sm_75',
        ),
        (changed(f"{FIRST}|block", 3), r"float32\[0\]: unknown field 'block'"),
        (changed(f"{FIRST}|m", "16"), r"\[0\]\.m: expected int, got str"),
        (changed(f"{FIRST}|rows", 0), r"rows of \[0\]; expected them from the fewest to the most"),
        (changed(FIRST.replace("|0", "|1|rows"), 99), r"rows, the most rows that each is for, and"),
        (changed(FIRST.removesuffix("|0"), []), r"and a last one without"),
        (changed(f"{FIRST}|m", 24), r"float32\[0\]: m is 24; expected a power of two from 16 to"),
        (changed(f"{FIRST}|k", 8), r"float32\[0\]: k is 8; expected a power of two from 16 to 256"),
        (changed(f"{FIRST}|warps", 3), r"3 stages, 3 warps; expected 1 to 8 stages and 1, 2, 4, 8"),
        (changed(f"{FIRST}|k", 256), None),
        (
            changed(f"{FIRST}", {"m": 256, "n": 256, "k": 64, "stages": 3, "warps": 8, "rows": 9}),
            r"256x256x64 \(3 stages, 8 warps, up to 9 rows\) needs 262144 bytes of shared memory, "
            r"and sm_80 has 166912",
        ),
    ],
)
def test_errors(tmp_path: Path, text: str, error: str | None) -> None:
    if error is None:
        read(tmp_path, text).of(LINEAR)
        return
    with pytest.raises(DriverError, match=error):
        read(tmp_path, text).of(LINEAR)
