"""unicode_table.h is what its generator makes."""

from __future__ import annotations

import os
import re
import unicodedata
from pathlib import Path

import pytest

from examples.cc_chat import make_unicode_table

TABLE = Path(os.environ["RUNFILES_DIR"], os.environ["UNICODE_TABLE"])


def test_is_up_to_date(capsys: pytest.CaptureFixture[str]) -> None:
    text = TABLE.read_text()
    version = re.match(r"// Unicode (\S+)\. ", text)
    assert version, "the header has no version"
    if version[1] != unicodedata.unidata_version:
        pytest.skip(f"Python knows Unicode {unicodedata.unidata_version}, the table {version[1]}")
    make_unicode_table.main()
    assert text == capsys.readouterr().out


def test_ranges() -> None:
    assert make_unicode_table.ranges([]) == []
    assert make_unicode_table.ranges([1, 2, 3, 7, 9, 10]) == [(1, 3), (7, 7), (9, 10)]
