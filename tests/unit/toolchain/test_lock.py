"""The maker of locks: which wheels a lock admits."""

from __future__ import annotations

import json
from pathlib import Path

import lock
import pytest


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


def report(**packages: list[str]) -> str:
    """What pip reports: each package needs the ones listed, and `root` was asked for."""
    return json.dumps(
        {
            "install": [
                {
                    "metadata": {"name": name, "requires_dist": requires},
                    "requested": name == "root",
                    "download_info": {"url": f"https://example.org/{name}-1.0-py3-none-any.whl"},
                }
                for name, requires in packages.items()
            ]
        }
    )


@pytest.mark.parametrize(
    ("without", "expected"),
    [
        ([], ["both", "cuda", "extra", "root", "torch"]),
        (["torch"], ["both", "extra", "root"]),
    ],
)
def test_what_only_an_omitted_package_needs_is_omitted_too(
    monkeypatch: pytest.MonkeyPatch, without: list[str], expected: list[str]
) -> None:
    def pip(*arguments: str, plain_index: bool = False) -> str:
        assert plain_index, "the lock must not depend on this machine's extra wheels"
        text = report(
            root=["Torch>=2", 'extra[x]; extra == "y"', "absent"],
            torch=["cuda", "both"],
            cuda=[],
            both=[],
            extra=["both>1"],
        )
        Path(arguments[arguments.index("--report") + 1]).write_text(text, encoding="utf-8")
        return ""

    monkeypatch.setattr(lock, "pip", pip)
    assert sorted(lock.resolve(Path("requirements.in"), without)) == expected
