"""The unpacker of wheels: what it leaves out, where files go, and that it is reproducible."""

from __future__ import annotations

import hashlib
import importlib.util
import struct
import zipfile
from pathlib import Path

import bytecode
import pytest
import unpack_wheels
from wheels import WheelError


def write(path: Path, text: str = "") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def wheel(folder: Path, files: dict[str, str], name: str = "p-1-py3-none-any.whl") -> Path:
    path = folder / name
    with zipfile.ZipFile(path, "w") as archive:
        for member, content in files.items():
            info = zipfile.ZipInfo(member)
            info.external_attr = (0o755 if content.startswith("\x7fELF") else 0o644) << 16
            archive.writestr(info, content)
    return path


def files_of(site: Path) -> list[str]:
    return sorted(str(path.relative_to(site)) for path in site.rglob("*") if path.is_file())


def test_files_go_where_pip_puts_them(tmp_path: Path) -> None:
    site = tmp_path / "site"
    files = {
        "p/__init__.py": "",
        "p-1.data/purelib/pure.py": "",
        "p-1.data/platlib/plat.py": "",
        "p-1.data/data/share/p.txt": "",
        "p-1.data/headers/p.h": "",
        "p-1.data/scripts/script": "#!python\n",
        "p-1.data/scripts/program": "\x7fELF",
        "p-1.dist-info/METADATA": "",
        "p-1.dist-info/RECORD": "p/__init__.py,sha256=x,0\np-1.data/scripts/script,sha256=y,0\n"
        'p-1.data/purelib/pure.py,sha256=z,0\n"p/unused,.h",,\n"p/a,b.txt",,\n',
        "p/unused,.h": "",
        "p/a,b.txt": "",
    }
    unpack_wheels.unpack([wheel(tmp_path, files)], site, ["p/unused*"])
    assert files_of(site) == [
        "bin/program",
        "include/python/p/p.h",
        "p-1.dist-info/METADATA",
        "p-1.dist-info/RECORD",
        "p/__init__.py",
        "p/a,b.txt",
        "plat.py",
        "pure.py",
        "share/p.txt",
    ]
    assert (site / "bin/program").stat().st_mode & 0o111
    record = (site / "p-1.dist-info" / "RECORD").read_text()
    assert record == 'p/__init__.py,sha256=x,0\n"p/a,b.txt",,\npure.py,sha256=z,0\n'


@pytest.mark.parametrize(
    ("member", "message"),
    [
        ("../p.py", "outside of the wheel"),
        ("p-1.data/purelib/../../p.py", "outside of the wheel"),
        ("p-1.data/documents/p.txt", "wheels have no scheme `documents`"),
    ],
)
def test_broken_wheels_are_refused(tmp_path: Path, member: str, message: str) -> None:
    with pytest.raises(WheelError, match=message):
        unpack_wheels.unpack([wheel(tmp_path, {member: ""})], tmp_path / "site")


def test_single_files(tmp_path: Path) -> None:
    one = wheel(tmp_path, {"p/lib/a.so": "a", "p/b.so": "b"})
    two = wheel(tmp_path, {"q-1.data/platlib/q/c.so": "c"}, "q-1-py3-none-any.whl")
    members = {"p/lib/a.so": tmp_path / "lib/a.so", "q/c.so": tmp_path / "lib/c.so"}
    unpack_wheels.extract_members([one, two], members)
    assert [path.read_text() for path in members.values()] == ["a", "c"]
    with pytest.raises(WheelError, match=r"no wheel has q/d\.so"):
        unpack_wheels.extract_members([one, two], {"q/d.so": tmp_path / "d.so"})


def test_what_cant_be_imported_is_an_error(tmp_path: Path) -> None:
    write(tmp_path / "good.py")
    write(tmp_path / "bad.py", "raise OSError('libcublas.so.13: no such file')\n")
    unpack_wheels.check_import("good", tmp_path)
    with pytest.raises(SystemExit, match=r"(?s)locked bad .* can't be imported:.*libcublas.so.13"):
        unpack_wheels.check_import("bad", tmp_path)


def test_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "site"
    arguments = [f"--out={out}", "--exclude=p/x*", "--check_import=p"]
    arguments.append(str(wheel(tmp_path, {"p/__init__.py": "", "p/x.py": ""})))
    parameters = write(tmp_path / "parameters", "".join(f"{line}\n" for line in arguments))
    monkeypatch.setattr("sys.argv", ["unpack_wheels.py", f"@{parameters}"])
    unpack_wheels.main()
    assert [name for name in files_of(out) if name.endswith(".py")] == ["p/__init__.py"]
    assert list(out.rglob("*.pyc"))
    monkeypatch.setenv("PYTHONHASHSEED", "1")
    with pytest.raises(SystemExit, match="needs PYTHONHASHSEED=0"):
        unpack_wheels.main()


def test_bytecode_is_reproducible_and_unchecked(tmp_path: Path) -> None:
    for number in range(20):
        code = f"NAMES = {{'a', 'b'}}\ndef f{number}(x): return x in {{'d', 'e', 'f'}}\n"
        write(tmp_path / "p" / f"m{number}.py", code)
    write(tmp_path / "p" / "broken.py", "def (:\n")
    write(tmp_path / "p" / "tests" / "t.py", "x = 1\n")

    def compiled() -> dict[str, str]:
        bytecode.compile_tree(tmp_path)
        files = sorted(tmp_path.rglob("*.pyc"))
        return {str(file): hashlib.sha256(file.read_bytes()).hexdigest() for file in files}

    first = compiled()
    assert len(first) == 20  # neither the broken one nor the tests
    assert compiled() == first
    compiled_code = Path(
        importlib.util.cache_from_source(str(tmp_path / "p" / "m0.py"))
    ).read_bytes()
    assert struct.unpack("<I", compiled_code[4:8]) == (0b01,)  # with a hash, and not checked
    assert str(tmp_path).encode() not in compiled_code
