"""Results as a run would give them, small enough to check by hand."""

from __future__ import annotations

from benchmarks.harness.results import Latency, Results, Start
from benchmarks.harness.stats import Sample

MACHINE = {
    "cpu": "Some <CPU>",
    "level": "x86-64-v4",
    "cores": 2,
    "memory_bytes": 8_000_000_000,
    "system": "Linux 6.1",
    "virtual": True,
    "python": "3.11.7",
    "versions": {"torch": "2.13.0+cpu"},
    "load_before": 0.1,
}

# A description of a model, as the BUILD file writes it.
MODEL = {
    "name": "m",
    "title": "M",
    "family": "small",
    "precision": "bfloat16",
    "build_precision": "bfloat16",
    "entry_point": "m:build",
    "weights": [],
    "inputs": {},
    "cases": {"one": {}},
    "start": "one",
    "case_inputs": "",
    "onnx_variant": "",
    "tolerance": 1e-3,
    "tokens": {},
    "past_bytes": {},
    "unread_weights": [],
    "capability": "",
    "gguf": "",
    "runners": {},
    "without": {},
}


def sample(seconds: float) -> Sample:
    return Sample.of([seconds * 0.9, seconds, seconds * 1.2])


def results() -> Results:
    """Two models: slim is twice as fast as the peer on one, and slower on the other."""
    models = {
        "small": {
            "title": "Small",
            "family": "small",
            "precision": "float32",
            "cases": {"batch1": {"batch": 1}},
            "tokens": {},
            "past_bytes": {},
            "read_bytes": 1000,
        },
        "llm": {
            "title": "A & B",
            "family": "llm",
            "precision": "float32",
            "cases": {"decode": {}},
            "tokens": {"decode": 1},
            "past_bytes": {"decode": 100_000_000},
            "read_bytes": 400_000_000,
        },
    }
    latencies = [
        Latency("small", "batch1", 1, "slim-v4", sample(1e-6), 1e-7, "", 10_000),
        Latency("small", "batch1", 1, "eager", sample(2e-6), 0.0, "", 40_000),
        Latency("small", "batch1", 1, "openvino", problem="openvino is not installed"),
        Latency("llm", "decode", 1, "slim-v4", sample(0.1), 1e-5),
        Latency("llm", "decode", 1, "eager", Sample.of([0.05]), 0.0),
        Latency("llm", "decode", 1, "openvino", None, 0.7, "WRONG: error 7.0e-01"),
    ]
    starts = [
        Start("small", "slim-v4", sample(0.001), 2_000_000, 1_000_000, 800_000, 500_000, 9, 1),
        Start("small", "eager", sample(1.0), 200_000_000, 150_000_000, 50_000_000, 0, 99, 1),
    ]
    return Results(MACHINE, models, {1: 10e9}, latencies, starts)
