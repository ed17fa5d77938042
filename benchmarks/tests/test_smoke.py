"""The whole benchmark on the smallest model, without the peers that other packages bring."""

from __future__ import annotations

import json
from pathlib import Path

from benchmarks.tests.programs import run


def test_quick_run(tmp_path: Path) -> None:
    printed = run("SMOKE", tmp_path, "--minutes", "0.1", "--markdown", str(tmp_path / "page.md"))
    results = json.loads((tmp_path / "out/runtime.json").read_text())
    problems = {e["contestant"]: e["problem"] for e in results["latencies"] + results["starts"]}
    assert problems.pop("onnxruntime") == "onnxruntime is not installed"
    assert problems.pop("openvino") == "openvino is not installed"
    # One of the two instruction sets is left out, or the CPU lacks it.
    assert "" in (problems["slim-v4"], problems["slim-v3"])
    assert "" in (problems["libtorch-v4"], problems["libtorch-v3"])
    assert problems["eager"] == ""
    assert not any("WRONG" in problem for problem in problems.values())
    assert "MLP, batch8" in printed
    assert "<svg" in (tmp_path / "out/runtime.html").read_text()
    assert "<svg" in (tmp_path / "page.html").read_text()
    assert "## Memory of a call" in (tmp_path / "page.md").read_text()
    assert all(e["call_memory"] >= 0 for e in results["latencies"] if not e["problem"])
