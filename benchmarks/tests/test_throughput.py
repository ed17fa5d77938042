from __future__ import annotations

import threading
import time

import pytest

from benchmarks.harness import throughput_report
from benchmarks.harness.throughput import Throughput, Throughputs
from benchmarks.peers.callers import measure_throughput
from benchmarks.tests.example import MACHINE, sample


def results() -> Throughputs:
    """Slim serves more calls with one caller, and fewer with four."""
    found = Throughputs(MACHINE, 2, {"small": "Small"})
    for callers, threads, name, rate in (
        (1, 1, "slim-v4", 100.0),
        (1, 2, "slim-v4", 150.0),
        (1, 1, "onnxruntime", 120.0),
        (1, 2, "onnxruntime", 75.0),
        (4, 1, "slim-v4", 180.0),
        (4, 1, "onnxruntime", 200.0),
    ):
        entry = Throughput("small", callers, threads, name, sample(rate), sample(1 / rate))
        found.entries.append(entry)
    found.entries.append(Throughput("small", 4, 1, "openvino", problem="it is not installed"))
    return found


def test_each_has_its_better_number_of_threads() -> None:
    best = results().best()
    threads = {name: entry.threads for name, entry in best["small", 1].items()}
    assert threads == {"slim-v4": 2, "onnxruntime": 1}


def test_report() -> None:
    text = throughput_report.text(results())
    (row,) = [line for line in text.splitlines() if "4 callers" in line and "180/s" in line]
    assert row.split() == ["Small,", "4", "callers", "180/s", "1.11", "-"]
    assert "most calls in 1 of 2 cases" in text
    assert "Small, 4 caller(s): 0.90 of ONNX Runtime" in text
    assert "openvino: it is not installed" in text


def test_page() -> None:
    text = throughput_report.page(results())
    assert "| Small, 1 caller | 150/s ±10 % | 120/s ±10 % (0.8) |" in text
    assert "2 of 2 cores of a virtual machine" in text
    # Tables of equal width.
    assert {line.count("|") for line in text.splitlines() if line.startswith("|")} == {5}


def test_results_are_read_as_they_were_written() -> None:
    assert Throughputs.from_json(results().to_json()) == results()


def test_callers_call_at_the_same_time() -> None:
    together = threading.Barrier(3)  # breaks unless three calls run at the same time
    found = measure_throughput([lambda: together.wait(timeout=10)] * 3, 0)
    assert found["calls"] == 3  # one of each, after one that doesn't count


def test_calls_are_measured() -> None:
    found = measure_throughput([lambda: time.sleep(0.01)] * 2, 0.05)
    assert found["calls"] >= 4
    assert found["p99_ns"] >= found["median_ns"] >= 0.01e9
    assert found["seconds"] >= 0.05
    assert found["waits"] >= 1


def test_a_call_that_fails_ends_the_measurement() -> None:
    with pytest.raises(ZeroDivisionError):
        measure_throughput([lambda: None, lambda: 1 // 0], 0.01)
