"""A Bazel persistent worker (JSON protocol): it imports torch once and runs requests in children.

The parent only imports: it runs no operator, so it has a single thread and can fork. Each request
gets a clean child, which can't pass state to the next one, and may crash. supervise.py restricts
the child, in which a model's code runs.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import tempfile
from typing import Any

from aoti_driver.base import environment, files
from aoti_driver.process import preloaded, supervise

# PyTorch makes millions of objects: a garbage collection after every 700 of them takes a tenth of
# the time of code generation. Steps that run without a worker have it, too.
COLLECT_AFTER = (50_000, 20, 100)


def serve(barrier: str) -> int:
    """Answers requests from standard input until it ends."""
    # Output of libraries goes to the worker's log: only responses may go to Bazel.
    requests = os.fdopen(os.dup(0), encoding="utf-8")
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    os.dup2(2, 1)
    for name in preloaded.FIRST:
        _preload(name)
    keep()
    supervise.hide()
    worker = _Worker(barrier)
    with requests, answers:
        for line in requests:
            if line.strip():
                answers.write(json.dumps(worker.answer(line)) + "\n")
                answers.flush()
    return 0


def _preload(name: str) -> None:
    with (
        environment.private_directories(),  # torch makes a cache folder when it is imported
        contextlib.suppress(ImportError),  # a step that needs it reports it
    ):
        importlib.import_module(name)


def keep() -> None:
    """Leaves what was imported out of garbage collections, also of children."""
    gc.collect()
    gc.freeze()


class _Worker:
    def __init__(self, barrier: str) -> None:
        self._later = [*preloaded.LATER]
        self._supervisor = supervise.Supervisor(barrier)

    def answer(self, line: str) -> dict[str, Any]:
        try:
            request: dict[str, Any] = json.loads(line)
            arguments = [str(a) for a in request.get("arguments", [])]
        except (ValueError, AttributeError, TypeError) as e:
            return {"exitCode": 1, "output": f"not a work request: {e}", "requestId": 0}
        status, output = self._run(arguments, request.get("sandboxDir") or ".")
        return {"exitCode": status, "output": output, "requestId": request.get("requestId", 0)}

    def _run(self, arguments: list[str], directory: str) -> tuple[int, str]:
        try:
            with tempfile.TemporaryFile() as log:
                status, said = self._supervisor.run(
                    arguments, directory, log.fileno(), self._preload_one
                )
                log.seek(0)
                return status, log.read().decode("utf-8", "replace") + said
        except OSError as e:
            return 1, f"{files.explain(e)}\n"

    def _preload_one(self) -> bool:
        if self._later:
            _preload(self._later.pop(0))
            keep()
        return bool(self._later)
