"""The specs of requests: as the rules write them, in place or in a file, and nothing else."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Literal

import pytest
from aoti_driver.base.errors import DriverError
from aoti_driver.contract.request_spec import read_spec


@dataclasses.dataclass(frozen=True)
class Inner:
    names: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class Spec:
    label: str
    mode: Literal["auto", "slim"]
    tolerance: float | None
    inner: Inner | None


TEXT = '{"label": "//m:e", "mode": "slim", "tolerance": 1, "inner": {"names": ["a", "b"]}}'


def test_in_place_and_in_a_file(tmp_path: Path) -> None:
    expected = Spec("//m:e", "slim", 1, Inner(("a", "b")))
    assert read_spec(TEXT, Spec) == expected
    path = tmp_path / "spec.json"
    path.write_text(TEXT, encoding="utf-8")
    assert read_spec(path, Spec) == read_spec(str(path), Spec) == expected
    nothing = '{"label": "", "mode": "auto", "tolerance": null, "inner": null}'
    assert read_spec(nothing, Spec) == Spec("", "auto", None, None)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (TEXT.replace("label", "name"), "spec: unknown field 'name'"),
        (TEXT.replace('"label": "//m:e", ', ""), "spec: missing field 'label'"),
        (
            TEXT.replace("slim", "libtorch"),
            'spec.mode: expected "auto" or "slim", got \'libtorch\'',
        ),
        (TEXT.replace('"b"', "2"), "spec.inner.names[1]: expected str, got int"),
        (TEXT[:-1], "Expecting ',' delimiter: line 1 column 82 (char 81)"),
    ],
)
def test_what_the_rules_do_not_write(text: str, message: str) -> None:
    with pytest.raises(DriverError) as caught:
        read_spec(text, Spec)
    assert str(caught.value) == f"--spec: this is not what the rules write: {message}"


def test_a_file_that_is_missing(tmp_path: Path) -> None:
    with pytest.raises(DriverError) as caught:
        read_spec(tmp_path / "none", Spec)
    assert (
        str(caught.value) == f"--spec={tmp_path / 'none'}: can't be read: No such file or directory"
    )
