"""The links between pages, and the files that CONTRIBUTING names, exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "CHANGELOG.md",
    *sorted((ROOT / "docs").rglob("*.md")),
]
_LINK = re.compile(r"(?<!!)\[[^\]\n]*\]\(([^)\s]+)\)")
_FENCE = re.compile(r"^ *```.*?^ *```$", re.MULTILINE | re.DOTALL)
_ANCHOR = re.compile(r'<a id="([^"]+)">')
_FILE = re.compile(r"`((?:[\w.-]+/)*[\w-]+\.(?:bzl|cc|h|in|md|py|sha256|txt))`")


def anchors(page: Path) -> set[str]:
    """The fragments that a link may have: headings as GitHub writes them, and named anchors."""
    text = _FENCE.sub("", page.read_text(encoding="utf-8"))
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {
        re.sub(r"[^\w\- ]", "", heading).strip().lower().replace(" ", "-") for heading in headings
    } | set(_ANCHOR.findall(text))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links(page: Path) -> None:
    broken = []
    for target in _LINK.findall(_FENCE.sub("", page.read_text(encoding="utf-8"))):
        if re.match(r"\w+:", target):
            continue
        path, _, fragment = target.partition("#")
        file = page.parent / path if path else page
        if not file.exists() or (fragment and fragment not in anchors(file)):
            broken.append(target)
    assert broken == []


def test_every_page_is_in_the_index() -> None:
    index = (ROOT / "docs/README.md").read_text(encoding="utf-8")
    listed = {target.partition("#")[0] for target in _LINK.findall(index)}
    assert [page.name for page in (ROOT / "docs").glob("*.md") if page.name not in listed] == [
        "README.md"
    ]


def test_files_that_contributing_names_exist() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    names = set(_FILE.findall(text))
    assert len(names) > 10
    tracked = [
        path.as_posix()
        for folder in ("benchmarks", "docs", "rules", "runtime", "tests", "toolchain", "tools")
        for path in (ROOT / folder).rglob("*.*")
    ]
    assert [name for name in names if not any(path.endswith(f"/{name}") for path in tracked)] == []
