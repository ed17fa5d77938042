"""The descriptions of two artifacts that differ."""

from __future__ import annotations

import io
import zipfile

from tests.integration.differences import first_difference


def zipped(**members: str) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, text in members.items():
            archive.writestr(zipfile.ZipInfo(name), text)
    return file.getvalue()


def archived(**members: bytes) -> bytes:
    parts = [b"!<arch>\n"]
    for name, data in members.items():
        header = f"{name + '/':<16}{0:<12}{0:<6}{0:<6}{644:<8}{len(data):<10}`\n"
        parts += [header.encode(), data, b"\n" * (len(data) % 2)]
    return b"".join(parts)


def test_bytes() -> None:
    assert first_difference(b"abc", b"abd") == "byte 2 of 3: b'abc', the other b'abd'"


def test_length() -> None:
    assert first_difference(b"abc", b"abcd").startswith("3 bytes, the other 4")


def test_member_of_a_zip() -> None:
    left, right = zipped(a="same", b="x"), zipped(a="same", b="y")
    assert first_difference(left, right) == "in its member b: byte 0 of 1: b'x', the other b'y'"


def test_another_member_of_a_zip() -> None:
    assert "has the member a where the other has b" in first_difference(zipped(a=""), zipped(b=""))


def test_member_of_a_static_library() -> None:
    left, right = archived(a=b"odd", b=b"x"), archived(a=b"odd", b=b"y")
    assert first_difference(left, right) == "in its member b/: byte 0 of 1: b'x', the other b'y'"


def test_damaged_zip() -> None:
    whole = zipped(a="text")
    damaged = whole.replace(b"text", b"test", 1)
    found = first_difference(whole, damaged)
    assert found.startswith("Bad CRC-32 for file 'a'; byte ")
