"""functions.txt, with which the build compares models, lists exactly the library's functions."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

ARCHIVES = os.environ["AOTI_SLIM_ARCHIVES"].split()
FUNCTIONS = Path(os.environ["AOTI_SLIM_FUNCTIONS"])


def symbols() -> dict[str, str]:
    """The global symbols of the archives, with nm's letters."""
    listing = subprocess.run(
        ["nm", "--defined-only", "--extern-only", *ARCHIVES],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    rows = (line.split() for line in listing.splitlines())
    return {row[2]: row[1] for row in rows if len(row) == 3}


def test_every_function_is_listed() -> None:
    found = {
        name.removeprefix("slim_")
        for name in symbols()
        if re.match(r"slim_(aoti|torch)_|aoti_slim_op_", name)
    }
    listed = FUNCTIONS.read_text(encoding="utf-8").split()
    assert sorted(found - set(listed)) == [], "add them to functions.txt"
    assert sorted(set(listed) - found) == [], "the library has no such functions"
    assert listed == sorted(listed)


def test_no_function_has_the_name_of_libtorchs() -> None:
    assert [name for name in symbols() if re.match(r"(aoti_torch|aoti_record|torch)_", name)] == []
