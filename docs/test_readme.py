"""README's numbers are those that the pages of measurements say."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGE = (ROOT / "docs/benchmarks.md").read_text(encoding="utf-8")
MODEL = "MiniLM-L6"


def row(first_words: str) -> str:
    (found,) = [line for line in README.splitlines() if line.startswith(f"| {first_words}")]
    return found


def cells(section: str) -> dict[str, str]:
    """The model's numbers in a section's table, by contestant."""
    text = PAGE.split(f"\n## {section}\n")[1].split("\n## ")[0]
    lines = [line.strip("|").split("|") for line in text.splitlines() if line.startswith("|")]
    (model,) = [line for line in lines if line[0].strip() == MODEL]
    return {
        name.strip(): re.sub(r" once| ±.*| \(.*", "", value.strip())
        for name, value in zip(lines[0], model, strict=True)
    }


def rounded(size: str) -> str:
    """As README has it: whole milliseconds."""
    number, unit = size.split()
    return f"{float(number):.0f} {unit}"


def test_speed() -> None:
    speed = row("Speed")
    cases = re.search(r"fastest in \d+ of (\d+) cases", PAGE)
    assert cases and f"Speed, {cases[1]} cases," in speed
    for name in ("ONNX Runtime", "OpenVINO", "eager PyTorch"):
        mean = re.search(rf"geometric mean of all cases:.* {name} ([0-9.]+)[,.]", PAGE)
        assert mean and f"{name} {mean[1].rstrip('.')}" in speed


def test_start() -> None:
    times = cells("Cold start")
    assert f"| {rounded(times['slim-v4'])} |" in row("Start")
    assert f"libtorch {rounded(times['libtorch-v4'])}" in row("Start")
    assert f"ONNX Runtime {rounded(times['onnxruntime'])}" in row("Start")


def test_size() -> None:
    sizes = cells("On disk, without weights")
    number, unit = sizes["slim-v4"].split()
    assert f"| {float(number):.1f} {unit} |" in row("Size")
    assert f"libtorch {sizes['libtorch-v4']}" in row("Size")
