"""Measures: contestants side by side, one round after the other."""

from __future__ import annotations

import argparse
import dataclasses
import math
import sys
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import contestants as known
from benchmarks.harness import process
from benchmarks.harness.config import Model
from benchmarks.harness.machine import cpus_for, installed_bytes
from benchmarks.harness.preparation import Prepared
from benchmarks.harness.process import ContestantError, Worker
from benchmarks.harness.results import Latency, Start
from benchmarks.harness.stats import Sample
from benchmarks.peers.protocol import DTYPES, Array, read_safetensors


@dataclasses.dataclass(frozen=True)
class Effort:
    """How long to measure."""

    rounds: int = 5
    seconds: float = 0.1  # of each contestant and case in a round
    starts: int = 7
    slow_starts: int = 2  # of what takes longer than a second
    load_timeout: float = 900  # torch.compile compiles meanwhile

    # No further round than the least begins that would end later (time.monotonic).
    deadline: float = math.inf

    @classmethod
    def of(cls, args: argparse.Namespace) -> Effort:
        """What --quick, --minutes and --rounds ask for."""
        effort = QUICK if args.quick else cls()
        if args.minutes:
            effort = dataclasses.replace(effort, rounds=MOST_ROUNDS)
        return dataclasses.replace(effort, rounds=args.rounds) if args.rounds else effort

    def until(self, deadline: float) -> Effort:
        return dataclasses.replace(self, deadline=deadline)


QUICK = Effort(rounds=2, seconds=0.03, starts=2, slow_starts=0)
MOST_ROUNDS = 15  # where time is what limits them
VERY_SLOW = 5.0  # seconds: one start has to do
LOOSE_TOLERANCE = 0.4  # of 1 - correlation, where a contestant rounds weights by itself
LEAST_ROUNDS = 3  # whatever the deadline: one round may be disturbed
# A contestant whose call takes so many times the fastest one's has two rounds. If it takes seconds
# besides, the call whose outputs are compared is the one that counts.
FAR_BEHIND = 10.0
SLOW_CALL = 0.1  # seconds: with less, rounds take no longer than those of the others
VERY_SLOW_CALL = 3.0


def note(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def relative_error(actual: Array, expected: Array) -> float:
    """The largest difference, relative to the largest expected value; inf for another shape."""
    if actual.shape != expected.shape or actual.dtype != expected.dtype:
        return math.inf
    if not expected.size:
        return 0.0
    difference = np.abs(actual.astype(np.float64) - expected.astype(np.float64)).max()
    scale = np.abs(expected.astype(np.float64)).max()
    error = float(difference / max(scale, 1e-30))
    return error if math.isfinite(error) else math.inf


def dissimilarity(actual: Array, expected: Array) -> float:
    """1 less the correlation: for a contestant that rounds weights in a way of its own."""
    if actual.shape != expected.shape:
        return math.inf
    correlation = float(np.corrcoef(actual.ravel(), expected.ravel())[0, 1])
    return 1 - correlation if math.isfinite(correlation) else math.inf


def read_outputs(path: Path, outputs: list[dict[str, Any]]) -> list[Array]:
    """Outputs as a worker has written them: elements alone, one after the other."""
    arrays = []
    with path.open("rb") as file:
        for output in outputs:
            count = math.prod(output["sizes"])
            array = np.fromfile(file, DTYPES[output["dtype"]], count)
            arrays.append(array.reshape(output["sizes"]))
    return arrays


def check(
    worker: Worker,
    prepared: Prepared,
    case: str,
    timeout: float,
    distance: Callable[[Array, Array], float],
) -> float:
    """The error of a contestant's outputs; what it returns beyond the expected ones is state."""
    path = prepared.folder / "outputs.bin"
    answer = worker.ask(f"run {case} {path}", timeout)
    actual = read_outputs(path, answer["outputs"])
    path.unlink()
    expected = list(
        read_safetensors(str(prepared.folder / f"{case}.expected.safetensors")).values()
    )
    if len(actual) < len(expected):
        return math.inf
    return max(distance(a, e) for a, e in zip(actual, expected))


def wrong(error: float, allowed: float) -> str:
    """Why a result with this error has no time; empty if it passes."""
    return f"WRONG: error {error:.1e}, allowed {allowed:.0e}" if error > allowed else ""


# (case, contestant) -> the minimum and the median of each round, in seconds.
_Rounds = dict[tuple[str, str], list[tuple[float, float]]]


def far_behind(rounds: Mapping[str, Sequence[tuple[float, float]]]) -> set[str]:
    """The contestants that need no further round of a case: slow ones, far behind the fastest."""
    best = {name: min(median for _, median in found) for name, found in rounds.items() if found}
    allowed = max(SLOW_CALL, FAR_BEHIND * min(best.values(), default=math.inf))
    return {
        name
        for name, median in best.items()
        if median > allowed and (len(rounds[name]) > 1 or median > VERY_SLOW_CALL)
    }


class ModelBenchmark:
    """One model with those who take part."""

    def __init__(
        self, setting: known.Setting, model: Model, prepared: Prepared, names: list[str]
    ) -> None:
        self.setting = setting
        self.model = model
        self.prepared = prepared
        # llama.cpp reads language models alone.
        self.names = [name for name in names if name != "llama.cpp" or model.gguf]
        self.problems = {
            name: known.why_not(name, setting, model, prepared.problems) for name in self.names
        }
        self._loaded: dict[str, int] = {}  # contestant -> bytes before its first call

    def latencies(self, threads: int, effort: Effort) -> list[Latency]:
        """All cases, with so many threads."""
        results = {
            (case, name): Latency(self.model.name, case, threads, name, problem=problem)
            for case in self.model.cases
            for name, problem in self.problems.items()
        }
        workers = self._start_workers(threads, effort, results)
        rounds: _Rounds = {key: [] for key in results}
        try:
            for case in self.model.cases:
                self._check_all(case, workers, results, rounds, effort)
            self._take_turns(workers, results, rounds, effort)
        finally:
            for worker in workers.values():
                worker.close()
        for key, result in results.items():
            if not result.problem:
                result.seconds = Sample.of_rounds(rounds[key])
        return list(results.values())

    def _take_turns(
        self,
        workers: dict[str, Worker],
        results: dict[tuple[str, str], Latency],
        rounds: _Rounds,
        effort: Effort,
    ) -> None:
        """Appends the minimum and the median of each round; each begins with another contestant."""
        names = deque(workers)
        took = 0.0
        for turn in range(effort.rounds):
            begun = time.monotonic()
            if turn >= LEAST_ROUNDS and begun + took > effort.deadline:
                break
            for case in self.model.cases:
                behind = far_behind({name: rounds[case, name] for name in names})
                for name in names:
                    result = results[case, name]
                    measured = not turn and rounds[case, name]
                    if result.problem or name in behind or measured:
                        continue
                    try:
                        answer = workers[name].ask(f"time {case} {effort.seconds} 1", 600)
                    except ContestantError as error:
                        result.problem = str(error)
                        continue
                    rounds[case, name].append((answer["min_ns"] / 1e9, answer["median_ns"] / 1e9))
                names.rotate(-1)
            took = time.monotonic() - begun

    def _start_workers(
        self, threads: int, effort: Effort, results: dict[tuple[str, str], Latency]
    ) -> dict[str, Worker]:
        environment = known.environment(self.setting, threads, self.model)

        def start(name: str) -> Worker | ContestantError:
            program = known.command(name, self.setting, self.model, self.prepared.folder, threads)
            try:
                worker = Worker(program, environment, cpus_for(threads), effort.load_timeout)
            except ContestantError as error:
                return error
            try:
                for case in self.model.cases:
                    path = self.prepared.folder / f"{case}.safetensors"
                    worker.ask(f"load {case} {path}", effort.load_timeout)
                self._loaded[name] = worker.own_memory()
            except ContestantError as error:
                worker.close()
                return error
            return worker

        able = [name for name in self.names if not self.problems[name]]
        workers = {}
        with ThreadPoolExecutor(2) as pool:
            for name, outcome in zip(able, pool.map(start, able)):
                if isinstance(outcome, Worker):
                    workers[name] = outcome
                else:
                    for case in self.model.cases:
                        results[case, name].problem = str(outcome)
        return workers

    def _check_all(
        self,
        case: str,
        workers: dict[str, Worker],
        results: dict[tuple[str, str], Latency],
        rounds: _Rounds,
        effort: Effort,
    ) -> None:
        """Compares the outputs of all contestants, and looks at the memory of a second call."""
        fastest = math.inf
        for name, worker in workers.items():
            result = results[case, name]
            if result.problem:
                continue
            worker.reset_peak()
            begun = time.monotonic()
            self._check(result, worker, effort)
            took = time.monotonic() - begun
            if result.problem:
                continue
            fastest = min(fastest, took)
            slow = took > max(VERY_SLOW_CALL, FAR_BEHIND * fastest)
            if slow and name not in known.COMPILE_IN_CALLS:
                rounds[case, name].append((took, took))
            else:
                worker.reset_peak()
                try:
                    worker.ask(f"time {case} 0 1", effort.load_timeout)
                except ContestantError as error:
                    result.problem = str(error)
                    continue
            result.call_memory = max(worker.peak_memory() - self._loaded[name], 0)

    def _check(self, result: Latency, worker: Worker, effort: Effort) -> None:
        try:
            own_rounding = known.rounds_by_itself(result.contestant, self.model)
            distance = dissimilarity if own_rounding else relative_error
            result.error = check(worker, self.prepared, result.case, effort.load_timeout, distance)
        except ContestantError as error:
            result.problem = str(error)
            return
        allowed = LOOSE_TOLERANCE if own_rounding else self.model.tolerance
        result.problem = wrong(result.error, allowed)

    def starts(
        self,
        threads: int,
        effort: Effort,
        used_memory: Callable[[], int | None] = lambda: None,
    ) -> list[Start]:
        """Every contestant's start, in turns. used_memory: of the GPU, by all processes."""
        results = {
            name: Start(self.model.name, name, problem=problem)
            for name, problem in self.problems.items()
        }
        environment = known.environment(self.setting, threads, self.model)
        times: dict[str, list[float]] = {name: [] for name in self.names}
        # The first turn brings the files into memory and doesn't count.
        for turn in range(effort.starts + 1):
            if turn > 1 and time.monotonic() > effort.deadline:
                break
            for name, result in results.items():
                if result.problem or turn > self._last_turn(times[name], effort):
                    continue
                program = known.start_command(
                    name, self.setting, self.model, self.prepared.folder, threads
                )
                try:
                    started = process.start(
                        self.setting.launcher,
                        program,
                        environment,
                        cpus_for(threads),
                        600,
                        used_memory,
                    )
                except ContestantError as error:
                    result.problem = str(error)
                    continue
                times[name].append(started.seconds)
                self._record(result, started)
        for name, result in results.items():
            if not result.problem:
                counted = times[name][1:] or times[name]
                result.seconds = Sample.of(counted)
        return list(results.values())

    @staticmethod
    def _last_turn(times: list[float], effort: Effort) -> int:
        fastest = min(times, default=0.0)
        if fastest > VERY_SLOW:
            return 0
        return effort.slow_starts if fastest > 1 else effort.starts

    def _record(self, result: Start, started: process.Started) -> None:
        result.peak_memory = started.peak_memory
        result.anonymous = started.anonymous
        result.file_backed = started.file_backed
        result.mapped_weights = started.mapped_weights
        result.program_bytes = started.executables
        result.weight_bytes = started.weights
        result.gpu_memory = started.gpu_memory
        if result.contestant in known.PYTHON:
            _, packages, _ = known.PYTHON[result.contestant]
            result.program_bytes = installed_bytes(packages)
            result.weight_bytes = self._weight_files(result.contestant)

    def _weight_files(self, contestant: str) -> int:
        """Bytes of the files that a contestant in Python reads its model from."""
        folder = self.prepared.folder
        names = {
            "onnxruntime": [f"onnx/{self._onnx()}.onnx", f"onnx/{self._onnx()}.onnx.data"],
            "openvino": [f"onnx/{self._onnx()}.xml", f"onnx/{self._onnx()}.bin"],
            "llama.cpp": [f"model-{self.model.gguf}.gguf"],
        }.get(contestant, ["module.pt"])
        return sum((folder / name).stat().st_size for name in names if (folder / name).is_file())

    def _onnx(self) -> str:
        return self.model.start if self.model.onnx_variant else "model"
