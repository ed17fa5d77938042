"""cc_classify finds the right class for test pictures."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

CC_CLASSIFY = Path(os.environ["RUNFILES_DIR"], os.environ["CC_CLASSIFY"])
PICTURES = {
    path.stem: path
    for path in (Path(os.environ["RUNFILES_DIR"], name) for name in os.environ["PICTURES"].split())
}


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [CC_CLASSIFY, *map(str, arguments)], capture_output=True, text=True, check=False
    )


def classify(*names: str) -> dict[str, list[tuple[float, str]]]:
    """(percentage, label) of the five likeliest classes, by picture."""
    output = run(*(PICTURES[name] for name in names))
    assert output.returncode == 0, output.stderr
    found: dict[str, list[tuple[float, str]]] = {}
    for line in output.stdout.splitlines():
        if match := re.fullmatch(r" +([\d.]+) %  (.+)", line):
            found[next(reversed(found))].append((float(match[1]), match[2]))
        else:
            found[Path(line).stem] = []
    return found


def test_a_cat_and_a_coffee_in_one_batch() -> None:
    found = classify("chelsea", "coffee")
    assert list(found) == ["chelsea", "coffee"]
    for classes in found.values():
        assert len(classes) == 5
        assert classes == sorted(classes, reverse=True)
    assert {"tiger cat", "Egyptian cat", "tabby, tabby cat"} == {c for _, c in found["chelsea"][:3]}
    percentage, label = found["coffee"][0]
    assert label == "espresso"
    assert percentage > 85


def test_the_batch_changes_nothing() -> None:
    together = classify("chelsea", "coffee", "astronaut")
    for name, classes in together.items():
        alone = classify(name)[name]
        assert [label for _, label in alone] == [label for _, label in classes]
        assert all(abs(a - b) <= 0.1 for (a, _), (b, _) in zip(alone, classes, strict=True))


def test_mistakes(tmp_path: Path) -> None:
    assert "name a picture" in run().stderr
    assert run("--pictures").returncode == 2
    assert "PICTURE..." in run("--help").stdout
    jpeg = tmp_path / "picture.jpg"
    jpeg.write_bytes(b"\xff\xd8\xff\xe0")
    failed = run(PICTURES["coffee"], jpeg)
    assert failed.returncode == 1
    assert failed.stdout == ""
    assert f"{jpeg}: this is a JPEG file: convert it to PNG" in failed.stderr
