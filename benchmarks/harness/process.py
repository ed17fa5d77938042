"""Contestants as processes: workers that answer commands, and starts that are measured."""

from __future__ import annotations

import dataclasses
import json
import os
import select
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

SECONDS_TO_END = 60.0
WEIGHT_SUFFIXES = (".safetensors", ".pt", ".gguf", ".onnx", ".data", ".bin")


class ContestantError(Exception):
    """A contestant can't do what it was asked for; the message is its reason."""


@contextmanager
def on_cpus(cpus: set[int]) -> Iterator[None]:
    """What this thread starts meanwhile runs on these CPUs alone."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cpus)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:300] if lines else ""


class Worker:
    """A process that answers each line of its standard input with a line of JSON. It is stopped in
    between: after a call, threads of some runtimes wait for the next one at full speed, and would
    take time from the contestant whose turn it is.
    """

    def __init__(
        self, command: Sequence[str], environment: Mapping[str, str], cpus: set[int], timeout: float
    ) -> None:
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115 (closed by close())
        self._buffer = b""
        with on_cpus(cpus):
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._stderr,
                env=environment,
                start_new_session=True,
            )
        try:
            self._answer(timeout)
        except ContestantError:
            self.close()
            raise
        self._process.send_signal(signal.SIGSTOP)

    def ask(self, command: str, timeout: float) -> dict[str, Any]:
        assert self._process.stdin
        self._process.send_signal(signal.SIGCONT)
        try:
            self._process.stdin.write(command.encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise ContestantError(self._how_it_ended()) from None
        answer = self._answer(timeout)
        self._process.send_signal(signal.SIGSTOP)
        return answer

    def reset_peak(self) -> None:
        """Lets peak_memory() forget what was before; of a process that has ended, nothing."""
        with suppress(OSError):
            Path(f"/proc/{self._process.pid}/clear_refs").write_text("5", encoding="ascii")

    def own_memory(self) -> int:
        """Resident bytes that are no pages of files."""
        status = self._status()
        return status["RssAnon"] + status["RssShmem"]

    def peak_memory(self) -> int:
        """The largest number of resident bytes, without the pages of files."""
        status = self._status()
        return status["VmHWM"] - status["RssFile"]

    def _status(self) -> dict[str, int]:
        return parse_status(Path(f"/proc/{self._process.pid}/status").read_text(encoding="utf-8"))

    def close(self) -> None:
        # A process that it has started would keep the pipes open.
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.communicate()
        self._stderr.close()

    def _answer(self, timeout: float) -> dict[str, Any]:
        assert self._process.stdout
        descriptor = self._process.stdout.fileno()
        end = time.monotonic() + timeout
        while b"\n" not in self._buffer:
            left = end - time.monotonic()
            if left <= 0 or not select.select([descriptor], [], [], left)[0]:
                raise ContestantError(f"no answer in {timeout:.0f} s")
            data = os.read(descriptor, 65536)
            if not data:
                raise ContestantError(self._how_it_ended())
            self._buffer += data
        line, _, self._buffer = self._buffer.partition(b"\n")
        return parse_answer(line.decode())

    def _how_it_ended(self) -> str:
        status = self._process.wait()
        self._stderr.seek(0)
        said = last_line(self._stderr.read().decode(errors="replace"))
        return f"exit status {status}" + (f": {said}" if said else "")


def parse_answer(line: str) -> dict[str, Any]:
    try:
        answer: dict[str, Any] = json.loads(line)
    except ValueError:
        raise ContestantError(f"no JSON: {line[:200]}") from None
    if "error" in answer:
        raise ContestantError(str(answer["error"]))
    return answer


@dataclasses.dataclass(frozen=True)
class Started:
    """A process that has given its first output."""

    seconds: float
    peak_memory: int
    anonymous: int
    file_backed: int
    mapped_weights: int
    executables: int  # bytes of all files that it maps, but for weights
    weights: int
    gpu_memory: int


def start(
    launcher: str,
    command: Sequence[str],
    environment: Mapping[str, str],
    cpus: set[int],
    timeout: float,
    used_memory: Callable[[], int | None] = lambda: None,
) -> Started:
    """Measures one start, up to the first output. used_memory: of the GPU, by all processes."""
    used_before = used_memory()
    with tempfile.TemporaryFile() as stderr:
        with on_cpus(cpus):
            process = subprocess.Popen(
                [launcher, *command],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                env=environment,
                start_new_session=True,
            )
        assert process.stdout
        try:
            if not select.select([process.stdout], [], [], timeout)[0]:
                raise ContestantError(f"no output in {timeout:.0f} s")
            line = process.stdout.readline().decode()
            nanoseconds, pid, answer = line.split(" ", 2)
            if not answer.strip():
                stderr.seek(0)
                said = last_line(stderr.read().decode(errors="replace"))
                raise ContestantError(said or "it ended without output")
            parse_answer(answer)
            used = used_memory()
            on_gpu = 0 if used is None or used_before is None else max(used - used_before, 0)
            return _look_at(int(pid), int(nanoseconds) / 1e9, on_gpu)
        finally:
            _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    """Waits for the launcher and what it started, but not for ever: OpenVINO was seen to wait for
    itself at its exit.
    """
    try:
        process.communicate(timeout=SECONDS_TO_END)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def _look_at(pid: int, seconds: float, gpu_memory: int) -> Started:
    status = parse_status(Path(f"/proc/{pid}/status").read_text(encoding="utf-8"))
    resident = parse_smaps(Path(f"/proc/{pid}/smaps").read_text(encoding="utf-8"))
    sizes = {path: Path(path).stat().st_size for path in resident if Path(path).is_file()}
    weights = {path for path in sizes if path.endswith(WEIGHT_SUFFIXES)}
    return Started(
        seconds=seconds,
        peak_memory=status["VmHWM"],
        anonymous=status["RssAnon"] + status["RssShmem"],
        file_backed=status["RssFile"],
        mapped_weights=sum(resident[path] for path in weights),
        executables=sum(size for path, size in sizes.items() if path not in weights),
        weights=sum(sizes[path] for path in weights),
        gpu_memory=gpu_memory,
    )


def parse_status(text: str) -> dict[str, int]:
    """The sizes in /proc/PID/status, in bytes."""
    sizes = {}
    for line in text.splitlines():
        words = line.split()
        if len(words) == 3 and words[2] == "kB":
            sizes[words[0].rstrip(":")] = int(words[1]) * 1024
    return sizes


def parse_smaps(text: str) -> dict[str, int]:
    """Resident bytes of each mapped file: pages that are the file's own, not a private copy."""
    resident: dict[str, int] = {}
    path = ""
    for line in text.splitlines():
        key, _, value = line.partition(":")
        if "-" in line.split(" ", 1)[0] and not key.endswith(("kB",)) and len(line.split()) >= 5:
            words = line.split(maxsplit=5)
            path = words[5] if len(words) == 6 and words[5].startswith("/") else ""
            if path:
                resident.setdefault(path, 0)
        elif path and key == "Rss":
            resident[path] += int(value.split()[0]) * 1024
        elif path and key == "Anonymous":
            resident[path] -= int(value.split()[0]) * 1024
    return resident
