"""Measures throughput: several callers of one loaded model, contestants side by side."""

from __future__ import annotations

import dataclasses
import json
import math
import time
from collections import deque
from typing import Any

from benchmarks.harness import contestants as known
from benchmarks.harness.config import Model
from benchmarks.harness.machine import cpus_for
from benchmarks.harness.measure import check, relative_error, wrong
from benchmarks.harness.preparation import Prepared
from benchmarks.harness.process import ContestantError, Worker
from benchmarks.harness.stats import Sample

# torch.compile compiles at its first call, and llama.cpp's Python package has one state.
CONTESTANTS = (
    "slim-v4",
    "slim-v3",
    "libtorch-v4",
    "libtorch-v3",
    "eager",
    "onnxruntime",
    "openvino",
)
CALLERS = (1, 2, 4, 16)


@dataclasses.dataclass(frozen=True)
class Effort:
    """How long to measure."""

    rounds: int = 5
    seconds: float = 1.0  # of each contestant in a round
    load_timeout: float = 300
    deadline: float = math.inf  # no further round begins that would end later (time.monotonic)


QUICK = Effort(rounds=1, seconds=0.05)


@dataclasses.dataclass
class Throughput:
    """One contestant with so many callers, each call with so many threads."""

    model: str
    callers: int
    threads: int
    contestant: str
    per_second: Sample | None = None  # calls
    p99_seconds: Sample | None = None  # 99 of 100 calls took no longer
    faults: float = 0.0  # pages per call that the kernel had to provide
    waits: float = 0.0  # per call: how often a thread gave up its CPU to wait
    allocations: float | None = None  # per call, where the program counts them
    problem: str = ""


@dataclasses.dataclass
class Throughputs:
    """Everything that one run found."""

    machine: dict[str, Any]
    cpus: int
    titles: dict[str, str]  # of the models
    entries: list[Throughput] = dataclasses.field(default_factory=list)

    def to_json(self) -> str:
        return json.dumps(dataclasses.asdict(self), indent=1)

    @classmethod
    def from_json(cls, text: str) -> Throughputs:
        fields = json.loads(text)
        entries = fields.pop("entries")
        for entry in entries:
            for name in ("per_second", "p99_seconds"):
                entry[name] = Sample(**entry[name]) if entry[name] else None
        return cls(**fields, entries=[Throughput(**entry) for entry in entries])

    def best(self) -> dict[tuple[str, int], dict[str, Throughput]]:
        """(model, callers) -> contestant -> its entry with the number of threads that serves most.

        So no contestant is measured by a setting that doesn't suit it.
        """
        rows: dict[tuple[str, int], dict[str, Throughput]] = {}
        for entry in self.entries:
            row = rows.setdefault((entry.model, entry.callers), {})
            other = row.get(entry.contestant)
            if other is None or _rate(entry) > _rate(other):
                row[entry.contestant] = entry
        return rows


def _rate(entry: Throughput) -> float:
    return entry.per_second.median if entry.per_second else 0.0


class ThroughputBenchmark:
    """One model with those who take part."""

    def __init__(
        self,
        setting: known.Setting,
        model: Model,
        prepared: Prepared,
        names: list[str],
        cpus: int,
    ) -> None:
        self.setting = setting
        self.model = model
        self.prepared = prepared
        self.cpus = cpus
        self.case = next(iter(model.cases))
        self.problems = {
            name: known.why_not(name, setting, model, prepared.problems) for name in names
        }

    def measure(self, callers: int, threads: int, effort: Effort) -> list[Throughput]:
        """All contestants in turns; each round begins with another one."""
        results = {
            name: Throughput(self.model.name, callers, threads, name, problem=problem)
            for name, problem in self.problems.items()
        }
        workers: dict[str, Worker] = {}
        answers: dict[str, list[dict[str, Any]]] = {name: [] for name in results}
        try:
            for result in results.values():
                if not result.problem:
                    self._start(result, workers, effort)
            names = deque(workers)
            took = 0.0
            for turn in range(effort.rounds):
                begun = time.monotonic()
                if turn and begun + took > effort.deadline:
                    break
                for name in names:
                    if results[name].problem:
                        continue
                    try:
                        command = f"callers {self.case} {callers} {effort.seconds}"
                        answers[name].append(workers[name].ask(command, 600))
                    except ContestantError as error:
                        results[name].problem = str(error)
                names.rotate(-1)
                took = time.monotonic() - begun
        finally:
            for worker in workers.values():
                worker.close()
        for name, result in results.items():
            if not result.problem:
                _summarise(result, answers[name])
        return list(results.values())

    def _start(self, result: Throughput, workers: dict[str, Worker], effort: Effort) -> None:
        """A worker with the case loaded and its outputs compared, or the reason why not."""
        environment = known.environment(self.setting, result.threads, self.model)
        folder = self.prepared.folder
        program = known.command(
            result.contestant, self.setting, self.model, folder, result.threads, result.callers
        )
        try:
            worker = Worker(program, environment, cpus_for(self.cpus), effort.load_timeout)
            workers[result.contestant] = worker
            worker.ask(f"load {self.case} {folder / self.case}.safetensors", effort.load_timeout)
            error = check(worker, self.prepared, self.case, effort.load_timeout, relative_error)
        except ContestantError as error_of_worker:
            result.problem = str(error_of_worker)
            return
        result.problem = wrong(error, self.model.tolerance)


def _summarise(result: Throughput, answers: list[dict[str, Any]]) -> None:
    result.per_second = Sample.of([answer["calls"] / answer["seconds"] for answer in answers])
    result.p99_seconds = Sample.of([answer["p99_ns"] / 1e9 for answer in answers])
    # The first round still makes what later ones reuse.
    result.faults = min(answer["faults"] for answer in answers)
    result.waits = min(answer["waits"] for answer in answers)
    if "allocations" in answers[0]:
        result.allocations = min(answer["allocations"] for answer in answers)
