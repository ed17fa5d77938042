"""The installer of locks: what it removes, finds and compiles."""

from __future__ import annotations

import hashlib
import importlib.util
import struct
from pathlib import Path

import header_closure
import install_site
import pip_runner
import pytest
import shared_libraries


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    install_site.SITE.mkdir()
    return install_site.SITE


def write(path: Path, text: str = "") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def test_logical_lines(tmp_path: Path) -> None:
    lock = write(
        tmp_path / "lock.txt",
        "# comment\na==1 \\\n    --hash=sha256:00 \\\n    --hash=sha256:11\n\n"
        "b==2 --hash=sha256:22 # via a\n",
    )
    assert install_site.logical_lines(lock) == [
        "a==1 --hash=sha256:00 --hash=sha256:11",
        "b==2 --hash=sha256:22",
    ]


class FakePip:
    """Stands for pip: knows which requirements it can install, and notes what it was asked for."""

    def __init__(self, *refused: str) -> None:
        self.refused = refused
        self.asked: list[list[str]] = []

    def __call__(self, command: object, requirements: list[str]) -> str | None:
        self.asked.append([line.split()[0] for line in requirements])
        return "no" if set(self.asked[-1]) & set(self.refused) else None


LOCK = (
    "torch==2.13.0 --hash=sha256:0\nnvidia-cublas==1 --hash=sha256:1\n"
    "triton==3 --hash=sha256:2\nnumpy==2 --hash=sha256:3\n"
)


@pytest.mark.parametrize(
    ("lock", "refused", "asked"),
    [
        (LOCK, [], [["torch==2.13.0+cpu"], ["numpy==2"]]),
        (
            LOCK,
            ["torch==2.13.0+cpu"],
            [
                ["torch==2.13.0+cpu"],
                ["torch==2.13.0", "nvidia-cublas==1", "triton==3", "numpy==2"],
            ],
        ),
        # Who names a variant gets it, with all that the lock holds.
        (
            LOCK.replace("2.13.0", "2.13.0+cpu"),
            [],
            [["torch==2.13.0+cpu", "nvidia-cublas==1", "triton==3", "numpy==2"]],
        ),
        ("numpy==2 --hash=sha256:3\n", [], [["numpy==2"]]),
    ],
)
def test_prefers_the_cpu_build(
    site: Path,
    monkeypatch: pytest.MonkeyPatch,
    lock: str,
    refused: list[str],
    asked: list[list[str]],
) -> None:
    fake = FakePip(*refused)
    monkeypatch.setattr(install_site, "run_pip", fake)
    install_site.install(write(Path("lock.txt"), lock))
    assert fake.asked == asked


def test_torch_and_cuda_can_be_left_out(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = FakePip()
    monkeypatch.setattr(install_site, "run_pip", fake)
    lock = write(Path("lock.txt"), LOCK + "torchvision==1 --hash=sha256:4\n")
    install_site.install(lock, without_torch=True)
    assert fake.asked == [["numpy==2", "torchvision==1"]]


def test_command_line(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = FakePip()
    monkeypatch.setattr(install_site, "run_pip", fake)
    lock = write(Path("lock.txt"), LOCK)
    monkeypatch.setattr("sys.argv", ["install_site.py", str(lock), "--without-torch"])
    install_site.main()
    assert fake.asked == [["numpy==2"]]
    monkeypatch.setenv("PYTHONHASHSEED", "1")
    with pytest.raises(SystemExit, match="needs PYTHONHASHSEED=0"):
        install_site.main()


def test_failing_pip_is_quoted(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(install_site, "run_pip", FakePip("numpy==2"))
    with pytest.raises(SystemExit, match=r"(?s)pip could not install lock.txt:.*no"):
        install_site.install(write(Path("lock.txt"), "numpy==2 --hash=sha256:3\n"))


def test_remove_traces(site: Path) -> None:
    info = site / "p-1.dist-info"
    for name in ("INSTALLER", "REQUESTED", "direct_url.json", "METADATA"):
        write(info / name)
    write(site / "p" / "__init__.py")
    write(site / "p" / "__pycache__" / "__init__.pyc")
    write(site / "bin" / "script", "#!/home/me/python\n")
    write(site / "bin" / "program", "\x7fELF")
    write(
        info / "RECORD",
        "p/__init__.py,sha256=x,0\n../../bin/script,sha256=y,0\n"
        "p-1.dist-info/METADATA,,\np-1.dist-info/INSTALLER,,\np/__pycache__/__init__.pyc,,\n",
    )
    install_site.remove_traces(site)
    assert sorted(path.name for path in info.iterdir()) == ["METADATA", "RECORD"]
    assert (info / "RECORD").read_text() == "p-1.dist-info/METADATA,,\np/__init__.py,sha256=x,0\n"
    assert [path.name for path in (site / "bin").iterdir()] == ["program"]
    assert not list(site.rglob("__pycache__"))


def test_bytecode_is_reproducible_and_unchecked(site: Path) -> None:
    for number in range(20):
        code = f"NAMES = {{'a', 'b'}}\ndef f{number}(x): return x in {{'d', 'e', 'f'}}\n"
        write(site / "p" / f"m{number}.py", code)
    write(site / "p" / "broken.py", "def (:\n")
    write(site / "p" / "tests" / "t.py", "x = 1\n")

    def compiled() -> dict[str, str]:
        install_site.compile_tree(site)
        files = sorted(site.rglob("*.pyc"))
        return {str(file): hashlib.sha256(file.read_bytes()).hexdigest() for file in files}

    first = compiled()
    assert len(first) == 20  # neither the broken one nor the tests
    assert compiled() == first
    bytecode = Path(importlib.util.cache_from_source(str(site / "p" / "m0.py"))).read_bytes()
    assert struct.unpack("<I", bytecode[4:8]) == (0b01,)  # with a hash, and not checked
    assert str(site.absolute()).encode() not in bytecode


def test_header_closure(tmp_path: Path) -> None:
    write(tmp_path / "a/root.h", '#include <b/x.h>\n#  include "near.h"\n#include <vector>\n')
    write(tmp_path / "a/near.h", '#ifdef NEVER\n#include "../b/y.h"\n#endif\n')
    write(tmp_path / "b/x.h", "#include <a/root.h>\n")
    write(tmp_path / "b/y.h")
    write(tmp_path / "b/unused.h")
    found = header_closure.header_closure(tmp_path, ["a/root.h"])
    assert found == ["a/near.h", "a/root.h", "b/x.h", "b/y.h"]


def test_headers_outside_of_the_root_are_left_alone(tmp_path: Path) -> None:
    write(tmp_path / "secret.h")
    write(tmp_path / "root/a.h", '#include "../secret.h"\n')
    assert header_closure.header_closure(tmp_path / "root", ["a.h"]) == ["a.h"]


def test_needed_libraries_of_what_is_no_library(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="not a 64-bit little-endian ELF file"):
        shared_libraries.needed_libraries(write(tmp_path / "x.so", "text"))


@pytest.mark.parametrize(
    ("answers", "calls", "result"),
    [
        (["ok"], 1, None),
        (["Temporary failure in name resolution", "ok"], 2, None),
        (["THESE PACKAGES DO NOT MATCH THE HASHES"], 1, "THESE PACKAGES DO NOT MATCH THE HASHES"),
        (["503 Server Error"] * 9, pip_runner.ATTEMPTS, "503 Server Error"),
    ],
)
def test_only_network_trouble_is_retried(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    answers: list[str],
    calls: int,
    result: str | None,
) -> None:
    count = tmp_path / "count"
    count.write_text("")
    # A pip of our own, as a module that `python -m pip` finds first.
    script = (
        "import pathlib, sys\n"
        f"count = pathlib.Path({str(count)!r})\n"
        "n = len(count.read_text()); count.write_text('x' * (n + 1))\n"
        f"answer = {answers!r}[n]\n"
        "print(answer, end='')\n"
        "sys.exit(answer != 'ok')\n"
    )
    write(tmp_path / "pip.py", script)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    assert pip_runner.run_pip(["install"], ["a==1 --hash=sha256:0"]) == result
    assert len(count.read_text()) == calls
