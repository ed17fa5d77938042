"""The results of a run: what is written as JSON, and what the reports are made of."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Mapping
from typing import Any

from benchmarks.harness.config import Model
from benchmarks.harness.families import FAMILIES
from benchmarks.harness.stats import Sample, geometric_mean

# In the order of the reports. The first one that has a number is the unit of the ratios.
CONTESTANTS = {
    "slim-v4": "slim, AVX-512 code",
    "slim-v3": "slim, AVX2 code",
    "libtorch-v4": "libtorch AOTI (C++), AVX-512 code",
    "libtorch-v3": "libtorch AOTI (C++), AVX2 code",
    "eager": "eager PyTorch",
    "compile": "torch.compile",
    "onnxruntime": "ONNX Runtime",
    "openvino": "OpenVINO",
    "llama.cpp": "llama.cpp",
}
OURS = ("slim-v4", "slim-v3")


@dataclasses.dataclass
class Latency:
    """One contestant on one case: seconds, or why there are none."""

    model: str
    case: str
    threads: int
    contestant: str
    seconds: Sample | None = None
    error: float | None = None  # relative to the largest output
    problem: str = ""  # "WRONG: ..." for a wrong result
    call_memory: int | None = None  # bytes that a call needs beyond the loaded model, at its peak

    @property
    def wrong(self) -> bool:
        return self.problem.startswith("WRONG")


@dataclasses.dataclass
class Start:
    """One contestant's start: exec to first output, and the process then."""

    model: str
    contestant: str
    seconds: Sample | None = None
    peak_memory: int = 0  # VmHWM, bytes
    anonymous: int = 0  # RssAnon + RssShmem
    file_backed: int = 0  # RssFile
    mapped_weights: int = 0  # of which weights
    program_bytes: int = 0  # executable, libraries, packages
    weight_bytes: int = 0
    gpu_memory: int = 0  # bytes; 0 where nothing tells
    problem: str = ""

    @property
    def peak_beyond_weights(self) -> int:
        """Peak memory but for the mapped weights, which processes share."""
        return max(self.peak_memory - self.mapped_weights, 0)


@dataclasses.dataclass
class Results:
    """Everything that one run of the benchmark found."""

    machine: dict[str, Any]
    models: dict[str, dict[str, Any]]  # name -> title, precision, cases, tokens, bytes
    memory_rate: dict[int, float]  # threads -> bytes per second
    latencies: list[Latency] = dataclasses.field(default_factory=list)
    starts: list[Start] = dataclasses.field(default_factory=list)

    def add(self, model: Model, facts: Mapping[str, Any]) -> None:
        """facts: that were found when the model was prepared."""
        self.models[model.name] = {
            "title": model.title,
            "family": model.family,
            "precision": model.precision,
            "cases": model.cases,
            "tokens": model.tokens,
            "past_bytes": model.past_bytes,
        } | dict(facts)

    def to_json(self) -> str:
        return json.dumps(dataclasses.asdict(self), indent=1)

    @classmethod
    def from_json(cls, text: str) -> Results:
        fields = json.loads(text)

        def sampled(entry: dict[str, Any]) -> dict[str, Any]:
            return entry | {"seconds": Sample(**entry["seconds"]) if entry["seconds"] else None}

        return cls(
            machine=fields["machine"],
            models=fields["models"],
            memory_rate={int(key): value for key, value in fields["memory_rate"].items()},
            latencies=[Latency(**sampled(entry)) for entry in fields["latencies"]],
            starts=[Start(**sampled(entry)) for entry in fields["starts"]],
        )

    def latency_rows(self) -> Iterator[tuple[str, str, int, dict[str, Latency]]]:
        """model, case, threads, and the contestants' latencies, in the order of measurement."""
        rows: dict[tuple[str, str, int], dict[str, Latency]] = {}
        for latency in self.latencies:
            key = (latency.model, latency.case, latency.threads)
            rows.setdefault(key, {})[latency.contestant] = latency
        for (model, case, threads), contestants in rows.items():
            yield model, case, threads, contestants

    def families(self) -> list[str]:
        """Those of the measured models, in the order of the report."""
        found = {self.models[latency.model]["family"] for latency in self.latencies}
        return [family for family in FAMILIES if family in found]

    def start_rows(self) -> Iterator[tuple[str, dict[str, Start]]]:
        rows: dict[str, dict[str, Start]] = {}
        for start in self.starts:
            rows.setdefault(start.model, {})[start.contestant] = start
        yield from rows.items()

    def contestants(self) -> list[str]:
        """Those that took part, or tried to."""
        names = {entry.contestant for entry in self.latencies}
        names |= {entry.contestant for entry in self.starts}
        return [name for name in CONTESTANTS if name in names]

    def tokens_per_second(self, latency: Latency) -> float | None:
        tokens = self.models[latency.model]["tokens"].get(latency.case)
        return tokens / latency.seconds.median if tokens and latency.seconds else None

    def share_of_memory_rate(self, latency: Latency) -> float | None:
        """For one token at a time: what it reads per second, of what the machine can merely read.

        It reads the weights, and the keys and values of earlier tokens.
        """
        model = self.models[latency.model]
        read = model["read_bytes"]
        one = model["tokens"].get(latency.case) == 1
        rate = self.memory_rate.get(latency.threads)
        if not (read and one and rate and latency.seconds):
            return None
        past = model["past_bytes"].get(latency.case, 0)
        return float((read + past) / latency.seconds.median / rate)


def own_value(values: dict[str, float]) -> float | None:
    """What ratios are relative to: slim's own number."""
    return next((values[name] for name in OURS if name in values), None)


def ratios(values: dict[str, float]) -> dict[str, float]:
    """Each contestant's number relative to slim's."""
    one = own_value(values)
    return {name: value / one for name, value in values.items()} if one else {}


def medians(contestants: dict[str, Latency]) -> dict[str, float]:
    """The median seconds of those that have some."""
    return {name: entry.seconds.median for name, entry in contestants.items() if entry.seconds}


def fastest_peer(values: dict[str, float]) -> tuple[str, float] | None:
    """The fastest one that isn't slim."""
    peers = {name: value for name, value in values.items() if name not in OURS}
    return min(peers.items(), key=lambda item: item[1]) if peers else None


def mean_ratios(results: Results) -> dict[str, float]:
    """Per contestant: the geometric mean of its latency ratios."""
    collected: dict[str, list[float]] = {}
    for _, _, _, contestants in results.latency_rows():
        for name, ratio in ratios(medians(contestants)).items():
            collected.setdefault(name, []).append(ratio)
    means = {name: geometric_mean(values) for name, values in collected.items()}
    return {name: means[name] or 0.0 for name in CONTESTANTS if name in means}
