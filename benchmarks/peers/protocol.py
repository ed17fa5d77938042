"""The side of the benchmark that a contestant in Python runs: the commands of benchmarks/runner.h.

Imports little, as what is imported here counts as the contestant's start.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.peers.callers import measure_throughput

Array = NDArray[Any]

DTYPES = {"F32": "float32", "F64": "float64", "I64": "int64", "I32": "int32", "BOOL": "bool"}
_NAMES = {dtype: name for name, dtype in DTYPES.items()}


def read_safetensors(path: str) -> dict[str, Array]:
    """The arrays of a safetensors file, read into memory of their own."""
    with open(path, "rb") as file:
        header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
        start = file.tell()
        arrays = {}
        for name, entry in header.items():
            if name == "__metadata__":
                continue
            begin, end = entry["data_offsets"]
            file.seek(start + begin)
            dtype = np.dtype(DTYPES[entry["dtype"]])
            array = np.fromfile(file, dtype, (end - begin) // dtype.itemsize)
            arrays[name] = array.reshape(entry["shape"])
    return arrays


def write_safetensors(path: str, arrays: dict[str, Array]) -> None:
    header: dict[str, Any] = {}
    offset = 0
    for name, array in arrays.items():
        header[name] = {
            "dtype": _NAMES[str(array.dtype)],
            "shape": list(array.shape),
            "data_offsets": [offset, offset + array.nbytes],
        }
        offset += array.nbytes
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for array in arrays.values():
            file.write(np.ascontiguousarray(array).tobytes())


@dataclasses.dataclass(frozen=True)
class Setup:
    """What a contestant is started with."""

    model: dict[str, Any]  # the description (benchmarks/harness/config.py)
    files: str  # the folder of prepared files
    threads: int  # of a call
    callers: int = 1  # how many call at the same time, at most

    def inputs(self, path: str) -> dict[str, Array]:
        """A case's inputs; those of static size that the file lacks are zeros."""
        given = read_safetensors(path)
        inputs = {}
        for name, spec in self.model["inputs"].items():
            if name in given:
                inputs[name] = given[name]
                continue
            dtype, _, sizes = spec.partition("]")[0].partition("[")
            inputs[name] = np.zeros([int(size) for size in sizes.split(",")], dtype)
        return inputs


class Peer(ABC):
    """A contestant with its model loaded."""

    @abstractmethod
    def load(self, case: str, path: str) -> None:
        """Reads a case's inputs."""

    def ready(self, case: str) -> None:  # noqa: B027 (most have nothing to do)
        """Brings the state to where calls of a case begin; not timed."""

    @abstractmethod
    def call(self, case: str) -> object:
        """One call: this is timed."""

    def caller(self, case: str, path: str) -> Callable[[], object]:
        """What calls the model beside other callers: with inputs and outputs of its own."""
        raise NotImplementedError("it is not measured with several callers")

    @abstractmethod
    def outputs(self, case: str) -> list[Array]:
        """The outputs of one call."""


def main(start: Callable[[Setup], Peer]) -> None:
    """The body of a contestant's program."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", required=True)
    parser.add_argument("--files", required=True)
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--callers", type=int, default=1)
    parser.add_argument("--start-case", nargs=2)
    args = parser.parse_args()
    # Libraries print to standard output; answers have it for themselves.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def answer(reply: dict[str, Any]) -> None:
        print(json.dumps(reply), file=answers, flush=True)

    try:
        with open(args.model, encoding="utf-8") as file:
            model = json.load(file)
        peer = start(Setup(model, args.files, args.threads, args.callers))
        if args.start_case:
            case, path = args.start_case
            peer.load(case, path)
            answer({"outputs": len(peer.outputs(case))})
            sys.stdin.read()
            return
    except Exception as error:
        answer({"error": explain(error)})
        sys.exit(1)
    answer({})
    paths: dict[str, str] = {}
    for line in sys.stdin:
        try:
            answer(_answer(peer, line, paths))
        except Exception as error:
            answer({"error": explain(error)})


def explain(error: BaseException) -> str:
    """What went wrong, in a line or two."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {' '.join(lines[:2])}"[:400]


def _answer(peer: Peer, line: str, paths: dict[str, str]) -> dict[str, Any]:
    command, case, rest = line.rstrip("\n").split(" ", 2)
    if command == "load":
        peer.load(case, rest)
        paths[case] = rest
        return {}
    if command == "run":
        arrays = [np.ascontiguousarray(array) for array in peer.outputs(case)]
        with open(rest, "wb") as file:
            for array in arrays:
                file.write(array.tobytes())
        outputs = [
            {"dtype": _NAMES[str(array.dtype)], "sizes": list(array.shape)} for array in arrays
        ]
        return {"outputs": outputs}
    if command == "time":
        seconds, runs = rest.split()
        peer.ready(case)
        return _time(lambda: peer.call(case), float(seconds), int(runs))
    if command == "callers":
        count, seconds = rest.split()
        callers = [peer.caller(case, paths[case]) for _ in range(int(count))]
        return measure_throughput(callers, float(seconds))
    raise ValueError(f"no such command: {command}")


def _time(call: Callable[[], object], seconds: float, runs: int) -> dict[str, Any]:
    clock = time.perf_counter_ns
    times: list[int] = []
    before = clock()
    end = before + int(seconds * 1e9)
    while before < end or len(times) < runs:
        call()
        after = clock()
        times.append(after - before)
        before = after
    times.sort()
    return {"runs": len(times), "min_ns": times[0], "median_ns": times[len(times) // 2]}
