"""The benchmark of throughput on the smallest model, without peers that other packages bring."""

from __future__ import annotations

import json
from pathlib import Path

from benchmarks.tests.programs import run


def test_callers(tmp_path: Path) -> None:
    printed = run("THROUGHPUT_SMOKE", tmp_path, "--callers", "1", "3", "--rounds", "2")
    results = json.loads((tmp_path / "out/throughput.json").read_text())
    for entry in results["entries"]:
        if entry["contestant"] in ("onnxruntime", "openvino"):
            assert entry["problem"] == f"{entry['contestant']} is not installed"
        elif entry["problem"] != "this CPU has no AVX-512":
            assert entry["problem"] == ""
            assert entry["per_second"]["rounds"] == 2
            assert entry["per_second"]["median"] > 0
            assert entry["p99_seconds"]["minimum"] > 0
            if entry["contestant"].startswith("slim"):
                # Of the results: memory for tensors is kept from the calls before.
                assert 1 <= entry["allocations"] <= 5
    served = {(e["callers"], e["threads"]) for e in results["entries"] if not e["problem"]}
    assert {callers for callers, _ in served} == {1, 3}
    assert "MLP, 3 callers" in printed
