"""A Bazel persistent worker (JSON protocol): torch is imported once, requests run in children.

The parent only imports: it runs no operator, so that it has one thread and can fork. Each request
gets a clean child, which can't leak state into the next one, and may crash.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import importlib
import json
import os
import signal
import sys
import tempfile
from typing import IO, Any

from aoti_driver import cli, environment

# The first request is an export as a rule: what later ones need is imported while it runs.
_PRELOADED = ("torch", "torch.export", "safetensors.torch")
_PRELOADED_LATER: tuple[str, ...] = ("torch._inductor.compile_fx",)
_PR_SET_PDEATHSIG = 1


def serve() -> int:
    """Answers requests from standard input until it ends."""
    # Whatever prints to standard output goes to the worker's log: only answers may go to Bazel.
    requests = os.fdopen(os.dup(0), encoding="utf-8")
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    os.dup2(2, 1)
    _preload(_PRELOADED)
    worker = _Worker()
    with requests, answers:
        for line in requests:
            if line.strip():
                answers.write(json.dumps(worker.answer(line)) + "\n")
                answers.flush()
    return 0


def _preload(names: tuple[str, ...]) -> None:
    with environment.private_directories():  # torch makes a cache folder when it is imported
        for name in names:
            with contextlib.suppress(ImportError):  # a step that needs it will say so
                importlib.import_module(name)
    gc.collect()
    gc.freeze()


class _Worker:
    def __init__(self) -> None:
        self._later = _PRELOADED_LATER

    def answer(self, line: str) -> dict[str, Any]:
        try:
            request: dict[str, Any] = json.loads(line)
            arguments = [str(a) for a in request.get("arguments", [])]
        except (ValueError, AttributeError, TypeError) as e:
            return {"exitCode": 1, "output": f"not a work request: {e}", "requestId": 0}
        status, output = self._run_in_child(arguments, request.get("sandboxDir") or ".")
        return {"exitCode": status, "output": output, "requestId": request.get("requestId", 0)}

    def _run_in_child(self, arguments: list[str], directory: str) -> tuple[int, str]:
        with tempfile.TemporaryFile() as log:
            child = os.fork()
            if child == 0:
                _child(arguments, directory, log)
            if self._later:
                _preload(self._later)
                self._later = ()
            _, status = os.waitpid(child, 0)
            code = os.waitstatus_to_exitcode(status)
            log.seek(0)
            output = log.read().decode("utf-8", "replace")
        if code < 0:
            name = signal.Signals(-code).name
            return 128 - code, f"{output}the driver's process was ended by {name}\n"
        return code, output


def _child(arguments: list[str], directory: str, log: IO[bytes]) -> None:
    status = 2
    try:
        if sys.platform == "linux":  # end with the worker, when Bazel ends that
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)
        os.chdir(directory)
        status = cli.main(arguments)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)
