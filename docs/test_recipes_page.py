"""What docs/recipes.md prints is what is built."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
_FOLDERS = (ROOT / "tests/e2e/recipes", ROOT / "tests/e2e/zoo")
_SNIPPET = re.compile(r"```(?:python|starlark)\n# (?P<file>\S+)\n(?P<text>.*?)```", re.DOTALL)
_PAGE = (ROOT / "docs/recipes.md").read_text(encoding="utf-8")


def _snippets() -> list[tuple[str, str]]:
    return [(found["file"], found["text"]) for found in _SNIPPET.finditer(_PAGE)]


@pytest.mark.parametrize(("file", "text"), _snippets())
def test_a_snippet_is_a_part_of_its_file(file: str, text: str) -> None:
    texts = [p.read_text(encoding="utf-8") for f in _FOLDERS if (p := f / file).is_file()]
    assert texts, f"there is no {file}"
    assert any(text in candidate for candidate in texts)


def test_every_code_block_names_its_file() -> None:
    assert _PAGE.count("```") == 2 * len(_snippets()) > 0
