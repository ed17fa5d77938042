"""The maker of locks: which wheels a lock admits."""

from __future__ import annotations

from pathlib import Path

import lock
import pytest

LOCK = Path(__file__).parents[3] / "toolchain" / "requirements.txt"


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        ("numpy-2.4.6-cp311-cp311-manylinux_2_27_x86_64.manylinux_2_28_x86_64.whl", True),
        ("numpy-2.4.6-cp313-cp313-manylinux_2_28_aarch64.whl", True),
        ("numpy-2.4.6-cp310-abi3-manylinux_2_28_x86_64.whl", True),
        ("numpy-2.4.6-py3-none-any.whl", True),
        ("numpy-2.4.6-py3-none-manylinux1_x86_64.whl", True),
        ("numpy-2.4.5-cp311-cp311-manylinux_2_28_x86_64.whl", False),
        ("numpy-2.4.6-cp314-cp314t-manylinux_2_28_x86_64.whl", False),
        ("numpy-2.4.6-cp311-cp311-musllinux_1_2_x86_64.whl", False),
        ("numpy-2.4.6-cp311-cp311-macosx_14_0_arm64.whl", False),
        ("numpy-2.4.6.tar.gz", False),
    ],
)
def test_fits(file: str, expected: bool) -> None:
    assert lock.fits(file, "2.4.6") is expected


def test_links_of_an_index_page() -> None:
    page = (
        '<a href="../../files/a-1-py3-none-any.whl#sha256=00ff">a</a>'
        '<a data-requires-python="&gt;=3.9" href="https://example.org/a-1%2Bcpu.whl#sha256=11">b</a>'
        '<a href="https://example.org/unhashed.whl">c</a>'
    )
    assert list(lock.links(page)) == [("a-1-py3-none-any.whl", "00ff"), ("a-1+cpu.whl", "11")]


UV = """\
cuda==2 ; python_full_version < '3.15' and sys_platform == 'linux'
colorama==0.4.6 ; sys_platform == 'win32'
My_Numpy[extra]==2.2.6 ; python_full_version < '3.11'
numpy==2.4.6 ; python_full_version >= '3.11' and python_full_version < '3.15'
    # via torch
torch==2.13.0 \\
    --hash=sha256:00
"""


def test_pins() -> None:
    assert [pin.line for pin in lock.read_pins(UV)] == [
        "cuda==2",
        "my-numpy==2.2.6 ; python_full_version < '3.11'",
        "numpy==2.4.6 ; python_full_version >= '3.11'",
        "torch==2.13.0",
    ]


def test_uv_resolves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the old lock's pins, for the oldest Python, from one index alone."""
    asked: list[str] = []

    def run(*command: str) -> str:
        asked.extend(command)
        words = dict(
            word.split("=", 1) for word in command if word.startswith("--") and "=" in word
        )
        assert Path(words["--override"]).read_text() == 'torch ; python_version < "0"\n'
        assert Path(words["--output-file"]).read_text() == "numpy==1\n"
        Path(words["--output-file"]).write_text(UV)
        return ""

    monkeypatch.setattr(lock, "run", run)
    monkeypatch.setattr("shutil.which", lambda *_, **__: "uv")
    before = "numpy==1 \\\n    --hash=sha256:00\n"
    pins = lock.resolve(tmp_path / "r.in", "https://index", "3.10", ["torch"], before)
    assert [pin.name for pin in pins] == ["cuda", "my-numpy", "numpy", "torch"]
    assert {"--universal", "--python-version=3.10", "--default-index=https://index"} <= {*asked}


def test_further_builds() -> None:
    text = (
        "aa  torch-2.13.0+cpu-cp312-cp312-manylinux_2_28_x86_64.whl\n"
        "bb  torch-2.12.0+cpu-cp312-cp312-manylinux_2_28_x86_64.whl\n"
        "cc  torchvision-0.28.0+cpu-cp312-cp312-manylinux_2_28_x86_64.whl\n"
    )
    assert lock.listed_hashes(text, lock.Pin("torch", "2.13.0")) == {"aa"}
    with pytest.raises(SystemExit, match=r"win_amd64.whl: no wheel for a Python and a machine"):
        lock.listed_hashes(
            "dd  torch-2.13.0-cp312-cp312-win_amd64.whl", lock.Pin("torch", "2.13.0")
        )


@pytest.mark.parametrize("python", ["3.10", "3.11", "3.12", "3.13", "3.14"])
def test_the_toolchains_lock_fits_every_python(python: str) -> None:
    """Each package once, and with a wheel's hash. pip evaluates the markers likewise."""
    text = LOCK.read_text(encoding="utf-8")
    minor = int(python.partition(".")[2])
    found: dict[str, str] = {}
    for pin in lock.read_pins(text):
        terms = [term.split() for term in pin.marker.split(" and ") if term]
        bounds = [(sign, int(bound.strip("'").partition(".")[2])) for _, sign, bound in terms]
        if all(minor < bound if sign == "<" else minor >= bound for sign, bound in bounds):
            assert pin.name not in found, pin
            found[pin.name] = pin.version
    assert {"torch", "numpy", "sympy", "safetensors", "setuptools", "networkx"} <= found.keys()
    assert found["torch"] == "2.13.0"


def test_the_cpu_builds_are_in_the_lock() -> None:
    text = LOCK.read_text(encoding="utf-8")
    listed = (LOCK.parent / "torch_cpu.sha256").read_text(encoding="utf-8").split()[::2]
    assert len(listed) == 9
    assert [digest for digest in listed if f"--hash=sha256:{digest}" not in text] == []
