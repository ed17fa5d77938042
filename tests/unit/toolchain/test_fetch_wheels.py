"""The downloader of locks: what it asks pip for, and what it finds in wheels."""

from __future__ import annotations

import hashlib
import json
import os
import struct
import zipfile
from collections.abc import Sequence
from pathlib import Path

import fetch_wheels
import header_closure
import pip_runner
import pytest
import shared_libraries
import torch_headers


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


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
    assert fetch_wheels.logical_lines(lock) == [
        "a==1 --hash=sha256:00 --hash=sha256:11",
        "b==2 --hash=sha256:22",
    ]


class FakePip:
    """Stands for pip: knows which requirements it can install, and notes what it was asked for.

    Its own indexes have all but the refused ones, PyTorch's has these as well if it is reached.
    """

    def __init__(self, *refused: str, reaches_pytorch: bool = False) -> None:
        self.refused = refused
        self.reaches_pytorch = reaches_pytorch
        self.asked: list[list[str]] = []

    def __call__(
        self, command: Sequence[str], requirements: list[str], attempts: int = 5
    ) -> str | None:
        self.asked.append([line.split()[0] for line in requirements])
        if fetch_wheels.CPU_INDEX in command and self.reaches_pytorch:
            return None
        return "no" if set(self.asked[-1]) & set(self.refused) else None


def requests(monkeypatch: pytest.MonkeyPatch, lock: str, pip: FakePip) -> list[list[str]]:
    """What is asked of pip for a lock, call by call."""
    monkeypatch.setattr(fetch_wheels, "run_pip", pip)
    fetch_wheels.download(write(Path("lock.txt"), lock))
    return pip.asked


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
                ["torch==2.13.0+cpu"],
                ["torch==2.13.0", "nvidia-cublas==1", "triton==3", "numpy==2"],
            ],
        ),
        # Who names a variant gets it, with all that the lock holds.
        (
            LOCK.replace("2.13.0", "2.13.0+cpu"),
            [],
            [["torch==2.13.0+cpu"], ["nvidia-cublas==1", "triton==3", "numpy==2"]],
        ),
        ("numpy==2 --hash=sha256:3\n", [], [["numpy==2"]]),
    ],
)
def test_prefers_the_cpu_build(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    lock: str,
    refused: list[str],
    asked: list[list[str]],
) -> None:
    assert requests(monkeypatch, lock, FakePip(*refused)) == asked


def test_the_cpu_build_is_asked_of_pytorch(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = FakePip("torch==2.13.0+cpu", reaches_pytorch=True)
    asked = [["torch==2.13.0+cpu"], ["torch==2.13.0+cpu"], ["numpy==2"]]
    assert requests(monkeypatch, LOCK, fake) == asked


VISION = (
    "torch==2.13.0 --hash=sha256:0\ntorchvision==0.28.0 ; python_version > '3' --hash=sha256:1\n"
    "triton==3 --hash=sha256:2\n"
)


@pytest.mark.parametrize(
    ("lock", "refused", "asked"),
    [
        (VISION, [], [["torch==2.13.0+cpu"], ["torchvision==0.28.0+cpu"]]),
        (
            VISION,
            ["torchvision==0.28.0+cpu"],
            [
                ["torch==2.13.0+cpu"],
                ["torchvision==0.28.0+cpu"],
                ["torchvision==0.28.0+cpu"],
                ["torchvision==0.28.0"],
            ],
        ),
        # They belong to torch: who gets another torch, or names a build, gets no CPU build.
        (
            VISION,
            ["torch==2.13.0+cpu"],
            [
                ["torch==2.13.0+cpu"],
                ["torch==2.13.0+cpu"],
                ["torch==2.13.0", "torchvision==0.28.0", "triton==3"],
            ],
        ),
        (
            VISION.replace("2.13.0", "2.13.0+cu130"),
            [],
            [["torch==2.13.0+cu130", "torchvision==0.28.0", "triton==3"]],
        ),
        ("torchvision==0.28.0+cu130 --hash=sha256:1\n", [], [["torchvision==0.28.0+cu130"]]),
        ("torchaudio==2.13.0+cpu --hash=sha256:1\n", [], [["torchaudio==2.13.0+cpu"]]),
    ],
)
def test_torchvision_follows_torch(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    lock: str,
    refused: list[str],
    asked: list[list[str]],
) -> None:
    assert requests(monkeypatch, lock, FakePip(*refused)) == asked


class Index:
    """A package index in a folder, as pip reads it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.folder.mkdir()

    def add(self, version: str, built_for: str) -> str:
        """A torchvision; returns its hash."""
        place = self.folder / "torchvision"
        place.mkdir(exist_ok=True)
        info = f"torchvision-{version}.dist-info"
        metadata = f"Metadata-Version: 2.1\nName: torchvision\nVersion: {version}\n"
        path = wheel(
            place / f"torchvision-{version}-py3-none-any.whl",
            {
                "torchvision/version.py": f"__version__ = '{built_for}'\n".encode(),
                f"{info}/METADATA": metadata.encode(),
                f"{info}/WHEEL": b"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
                f"{info}/RECORD": b"",
            },
        )
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        with (place / "index.html").open("a") as page:
            quoted = path.name.replace("+", "%2B")
            page.write(f'<a href="{quoted}#sha256={digest}">{path.name}</a>\n')
        return digest


@pytest.mark.parametrize(
    ("pinned", "admits_cpu", "reaches_pytorch", "found"),
    [
        ("0.28.0", True, True, []),
        ("0.28.0", True, False, ["torchvision 0.28.0+cu130"]),
        ("0.28.0", False, True, ["torchvision 0.28.0+cu130"]),
        ("0.28.0+cpu", True, True, []),
    ],
)
def test_torchvision_of_indexes_in_folders(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    pinned: str,
    admits_cpu: bool,
    reaches_pytorch: bool,
    found: list[str],
) -> None:
    pypi, pytorch = Index(folder / "pypi"), Index(folder / "pytorch")
    hashes = [pypi.add("0.28.0", "0.28.0+cu130")]
    cpu = pytorch.add("0.28.0+cpu", "0.28.0+cpu")
    hashes += [cpu] if admits_cpu else []
    isolated_pip(monkeypatch, pypi)
    reached = pytorch.folder if reaches_pytorch else folder / "nowhere"
    monkeypatch.setattr(fetch_wheels, "CPU_INDEX", reached.as_uri())
    words = [f"torchvision=={pinned}", *(f"--hash=sha256:{each}" for each in hashes)]
    fetch_wheels.download(write(Path("lock.txt"), " ".join(words) + "\n"))
    (taken,) = fetch_wheels.WHEELS.iterdir()
    assert taken.name.split("-")[1] == ("0.28.0" if found else "0.28.0+cpu")
    facts = fetch_wheels.describe([taken], torch=False)
    assert facts["cuda_builds"] == found


def test_a_cpu_build_that_is_nowhere(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pypi = Index(folder / "pypi")
    digest = pypi.add("0.28.0", "0.28.0+cu130")
    isolated_pip(monkeypatch, pypi)
    nowhere = (folder / "nowhere").as_uri()
    monkeypatch.setattr(fetch_wheels, "CPU_INDEX", nowhere)
    lock = write(Path("lock.txt"), f"torchvision==0.28.0+cpu --hash=sha256:{digest}\n")
    with pytest.raises(SystemExit) as error:
        fetch_wheels.download(lock)
    message = str(error.value)
    assert "pip could not install lock.txt:" in message
    assert "torchvision==0.28.0+cpu is looked for in pip's own indexes and in " + nowhere in message
    assert "(PIP_EXTRA_INDEX_URL)" in message
    assert "see that the lock has the wheel's hash" in message


def isolated_pip(monkeypatch: pytest.MonkeyPatch, index: Index) -> None:
    """pip with this index alone."""
    for name in ("PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS", "PIP_NO_INDEX"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_INDEX_URL", index.folder.as_uri())


def test_torch_and_cuda_can_be_left_out(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = FakePip()
    monkeypatch.setattr(fetch_wheels, "run_pip", fake)
    lock = write(Path("lock.txt"), LOCK + "torchvision==1 --hash=sha256:4\n")
    fetch_wheels.download(lock, without_torch=True)
    assert fake.asked == [["torchvision==1+cpu"], ["numpy==2"]]


def test_command_line(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fake = FakePip()
    monkeypatch.setattr(fetch_wheels, "run_pip", fake)
    lock = write(Path("lock.txt"), LOCK)
    monkeypatch.setattr("sys.argv", ["fetch_wheels.py", str(lock), "--without-torch"])
    fetch_wheels.main()
    assert fake.asked == [["numpy==2"]]
    assert json.loads(capsys.readouterr().out) == {"cuda_builds": [], "wheels": []}


def test_failing_pip_is_quoted(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetch_wheels, "run_pip", FakePip("numpy==2"))
    with pytest.raises(SystemExit, match=r"(?s)pip could not install lock.txt:.*no"):
        fetch_wheels.download(write(Path("lock.txt"), "numpy==2 --hash=sha256:3\n"))


def test_header_closure() -> None:
    headers = {
        "a/root.h": '#include <b/x.h>\n#  include "near.h"\n#include <vector>\n',
        "a/near.h": '#ifdef NEVER\n#include "../b/y.h"\n#endif\n#include "../../out.h"\n',
        "a/below/root.h": "",
        "b/x.h": "#include <a/root.h>\n",
        "b/y.h": "",
        "b/unused.h": "",
    }
    found = header_closure.header_closure(headers, headers.__getitem__, ["a/*t.h"])
    assert found == ["a/near.h", "a/root.h", "b/x.h", "b/y.h"]


def library(needed: list[str], runpath: str = "") -> bytes:
    """An ELF file with nothing but a dynamic section."""
    strings = b"\0" + b"".join(name.encode() + b"\0" for name in [*needed, runpath])
    entries = [(1, strings.index(name.encode() + b"\0")) for name in needed]
    if runpath:
        entries.append((29, strings.index(runpath.encode() + b"\0")))
    start = 64 + 2 * 56
    size = 16 * (len(entries) + 3)
    entries += [(5, start + size), (10, len(strings)), (0, 0)]
    dynamic = b"".join(struct.pack("<qQ", *entry) for entry in entries)
    header = b"\x7fELF\x02\x01".ljust(32, b"\0") + struct.pack("<Q14xHH", 64, 56, 2)
    total = start + size + len(strings)
    load = struct.pack("<IIQQQQQQ", 1, 4, 0, 0, 0, total, total, 1)
    section = struct.pack("<IIQQQQQQ", 2, 4, start, start, start, size, size, 1)
    return header.ljust(64, b"\0") + load + section + dynamic + strings


def wheel(path: Path, files: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return path


def test_describes_torch(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch_headers, "TORCH_HEADERS", ("torch/*.h",))
    torch = wheel(
        folder / "torch-2.13.0+cpu-cp311-cp311-linux_x86_64.whl",
        {
            "torch/include/torch/a.h": b"#include <c10/b.h>\n",
            "torch/include/c10/b.h": b"",
            "torch/include/c10/unused.h": b"",
            torch_headers.CONTAINER: b"container",
            "torch/lib/libtorch_cpu.so": library(["libc10.so", "libblas.so.1", "libc.so.6"]),
            "torch/lib/libc10.so": library([]),
            "torch/lib/libunused.so": library([]),
        },
    )
    blas = wheel(folder / "blas-1-py3-none-any.whl", {"blas.libs/libblas.so.1": library([])})
    facts = fetch_wheels.describe([blas, torch], torch=True)
    assert facts == {
        "cuda_builds": [],
        "libraries": [
            "blas.libs/libblas.so.1",
            "torch/lib/libc10.so",
            "torch/lib/libtorch_cpu.so",
        ],
        "torch_version": "2.13.0+cpu",
        "wheels": [blas.name, torch.name],
    }
    headers = folder / "torch_headers"
    found = {str(path.relative_to(headers)) for path in headers.rglob("*.*")}
    assert found == {"c10/b.h", "torch/a.h", torch_headers.CONTAINER}


def test_runpath_is_replaced_in_place(tmp_path: Path) -> None:
    path = tmp_path / "python3"
    path.write_bytes(library(["libpython3.so"], "/home/somebody/python/lib"))
    assert shared_libraries.runpath(path) == ["/home/somebody/python/lib"]
    shared_libraries.replace_runpath(path, "$ORIGIN/../lib")
    assert shared_libraries.runpath(path) == ["$ORIGIN/../lib"]
    assert b"somebody" not in path.read_bytes()
    assert shared_libraries.needed_libraries(path) == ["libpython3.so"]


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
    # A fake pip, as a module that `python -m pip` finds first.
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
