"""The C++ toolchain from the ziglang wheel, with a script in place of zig."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from zig import install_zig


def fill(cache: Path) -> None:
    for number, name in enumerate(install_zig._LIBRARIES):
        file = cache / "o" / str(number) / name
        file.parent.mkdir(parents=True)
        file.write_text(name, encoding="utf-8")


def test_libraries_are_found_by_name(tmp_path: Path) -> None:
    fill(tmp_path / "cache")
    install_zig.take_libraries(tmp_path / "cache", tmp_path / "lib")
    assert (tmp_path / "lib" / "libm.so").read_text(encoding="utf-8") == "libm.so.6"
    assert "-lc++" in (tmp_path / "lib" / "libstdc++.a").read_text(encoding="utf-8")


def test_a_library_too_many_is_an_error(tmp_path: Path) -> None:
    fill(tmp_path / "cache")
    (tmp_path / "cache" / "libc++.a").touch()
    with pytest.raises(SystemExit, match=r"has 2 files called libc\+\+\.a, expected one"):
        install_zig.take_libraries(tmp_path / "cache", tmp_path / "lib")


def test_what_zig_says_is_told(tmp_path: Path) -> None:
    zig = tmp_path / "zig"
    zig.write_text("#!/bin/sh\necho no such target >&2\nexit 1\n", encoding="utf-8")
    zig.chmod(0o755)
    with pytest.raises(SystemExit) as failure:
        install_zig.build_libraries(tmp_path, "z80", "2.28", tmp_path)
    assert str(failure.value) == "zig could not build the libraries for z80:\nno such target\n"


@pytest.fixture
def called(tmp_path: Path) -> Path:
    """The wrapper of the compiler, with a zig beside it that prints its arguments."""
    folder = tmp_path / "bin"
    folder.mkdir()
    text = install_zig._CC.format(cpu="aarch64", glibc="2.28", flags="-DFLAG")
    for name, script in {"cc": text, "zig": '#!/bin/sh\nprintf "%s\\n" "$@"\n'}.items():
        (folder / name).write_text(script, encoding="utf-8")
        (folder / name).chmod(0o755)
    return folder / "cc"


def arguments(called: Path, *own: str) -> list[str]:
    return subprocess.run(
        [called, *own], check=True, capture_output=True, text=True
    ).stdout.splitlines()


def test_compiling(called: Path) -> None:
    found = arguments(called, "-c", "a b.cc", "-o", "a.o")
    assert found[0] == "clang"
    assert "-DFLAG" in found
    assert "a b.cc" in found
    assert "-nostdlib" not in found


def test_linking_a_program(called: Path) -> None:
    found = arguments(called, "a.o", "-o", "a")
    assert (
        found.index(f"{called.parent}/../lib/Scrt1.o") < found.index("a.o") < found.index("-lc++")
    )


def test_linking_a_shared_library(called: Path) -> None:
    found = arguments(called, "-shared", "a.o", "-o", "liba.so")
    assert "-lc++" in found
    assert not [argument for argument in found if argument.endswith("Scrt1.o")]
