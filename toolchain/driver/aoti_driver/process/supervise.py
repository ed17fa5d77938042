"""Runs a request in a child process, which can't write the outputs or talk to Bazel.

The child writes its outputs to a separate folder. They are moved to their places after it has
reported that the step is done: a model that exits, crashes or is killed leaves no file that could
be taken for a result.
"""

from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import faulthandler
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import NoReturn

from aoti_driver.base import files, interruption
from aoti_driver.base.errors import DriverError
from aoti_driver.process import barrier, cli
from aoti_driver.process.children import children_of_this_process, end_children
from aoti_driver.process.staging import Staging

# Users run these subcommands themselves, without a barrier. All others are actions of Bazel.
_FREE = ("verify", "freeze", "frozen_diff", "info", "ops_diff", "ops_update", "tune")
_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_CHILD_SUBREAPER = 1, 4, 36
_FINISHED = "finished"  # written by the child at the end of the step
_NOT_PATHS = frozenset({"--import_root", "--label", "--target", "--model"})

exit_process = os._exit


class Supervisor:
    """Runs requests, each in a child of this process."""

    def __init__(self, mode: str = "auto") -> None:
        self._mode = mode
        self._told = False
        self._interpreter = list(barrier.interpreter())

    def run(
        self,
        argv: Sequence[str],
        directory: str = ".",
        log: int | None = None,
        meanwhile: Callable[[], bool] = lambda: False,
    ) -> tuple[int, str]:
        """Returns the exit status, and text to print after the child's output.

        directory: the base of the request's relative paths. log: a file for the child's output.
        meanwhile: called while the child runs, again as long as it returns True.
        """
        try:
            with _beginning_at(directory):
                arguments = cli.expand(argv)
        except DriverError as e:
            return 1, f"{e}\n"
        if arguments[:1] and arguments[0] in _FREE and log is None:
            return cli.execute(arguments), ""
        # Bazel ends a worker when its user interrupts it. Then the child is ended first, and
        # temporary files are removed.
        interruption.exit_on_sigterm()
        try:
            with files.scratch_directory() as scratch, open(os.memfd_create("notes")) as notes:
                staging = Staging(arguments, Path(directory).absolute())
                step = _Step(arguments, directory, log, scratch, notes.fileno(), staging)
                try:
                    staging.make()
                    return self._in_child(step, meanwhile)
                finally:
                    staging.remove()
        except DriverError as e:
            return 1, f"{self._label(arguments, directory)}{e}\n"
        except OSError as e:
            return 1, f"{self._label(arguments, directory)}{files.explain(e)}\n"

    def _in_child(self, step: _Step, meanwhile: Callable[[], bool]) -> tuple[int, str]:
        # Processes that outlive the child become children of this process, which can end them.
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1)
        others = children_of_this_process()
        child = os.fork()
        if child == 0:
            self._child(step)
        try:
            with contextlib.suppress(OSError):
                os.setpgid(child, child)
            # The child's number stays in use until waitpid, so it can't refer to another process or
            # group.
            ended = os.WEXITED | os.WNOWAIT
            while meanwhile() and os.waitid(os.P_PID, child, ended | os.WNOHANG) is None:
                pass
            os.waitid(os.P_PID, child, ended)
        finally:
            for end in os.kill, os.killpg:
                with contextlib.suppress(OSError):
                    end(child, signal.SIGKILL)
            _, waited = os.waitpid(child, 0)
            end_children(but=others)
        status = os.waitstatus_to_exitcode(waited)
        notes = step.read_notes()
        said = self._tell(step, [line for line in notes if line in barrier.HOLES])
        if status == 0 and _FINISHED in notes:
            step.staging.commit()
            return 0, said
        step.staging.forget()
        where = self._label(step.arguments, step.directory)
        if status < 0:
            return 128 - status, f"{said}{where}{_killed(-status)}\n"
        if status == 0:
            return 1, (
                f"{said}{where}the process that ran this step ended itself with status 0 before "
                "the step was done: native code of the model, or of a package that it imports, "
                "called exit(). Remove that call: a step needs its process to the end.\n"
            )
        return status, said

    @staticmethod
    def _label(arguments: Sequence[str], directory: str) -> str:
        with contextlib.suppress(DriverError), _beginning_at(directory):
            return cli.label(arguments)
        return ""

    def _tell(self, step: _Step, holes: Sequence[str]) -> str:
        """Text about what the barrier can't restrict; printed once per supervisor, if a model's
        code runs.
        """
        if self._told or not holes or not step.has_sources():
            return ""
        self._told = True
        return (
            f"rules_aoti: nothing keeps this step from {' and '.join(holes)}. The build does "
            "not notice if a model uses files that its target does not declare. See "
            "docs/reproducibility.md.\n"
        )

    def _child(self, step: _Step) -> NoReturn:
        status = 2
        try:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            parent = os.getppid()
            libc = ctypes.CDLL(None)
            libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)  # end when Bazel ends the worker
            libc.prctl(_PR_SET_DUMPABLE, 1)  # the worker hides its own files from other processes
            os.setpgid(0, 0)
            if step.log is not None:
                os.dup2(step.log, 1)
                os.dup2(step.log, 2)
            _close_all_but({0, 1, 2, step.notes})
            os.chdir(step.directory)
            faulthandler.enable(2, all_threads=False)
            files.stage(step.staging.places)
            _watch_exit()
            self._raise_barrier(step, parent)
            status = cli.execute(step.arguments, step.scratch)
            if status == 0:
                step.note(_FINISHED)
        except DriverError as e:
            print(e, file=sys.stderr)
            status = 1
        except BaseException:
            traceback.print_exc()
        finally:
            with contextlib.suppress(OSError, ValueError):
                sys.stdout.flush()
                sys.stderr.flush()
            exit_process(status)

    def _raise_barrier(self, step: _Step, parent: int) -> None:
        if self._mode == "off":
            return
        readable = [*self._interpreter, *_inputs(step.arguments)]
        writable = [str(step.scratch), *step.staging.folders]
        protected = [parent, -os.getpgid(parent) & 0xFFFFFFFF]
        holes = barrier.raise_around(readable, writable, protected)
        if holes and self._mode == "required":
            raise DriverError(
                f'the toolchain has barrier = "required", but nothing keeps this step from '
                f"{' and '.join(holes)}. Build where the kernel can do it, or set barrier = "
                '"auto". See docs/reproducibility.md.'
            )
        for hole in holes:
            step.note(hole)


@dataclasses.dataclass(frozen=True)
class _Step:
    """A request, with the places where its process reads, writes and prints.

    notes: a file in memory, without a name, in which the child writes lines for the supervisor.
    """

    arguments: Sequence[str]
    directory: str
    log: int | None
    scratch: Path
    notes: int
    staging: Staging

    def has_sources(self) -> bool:
        return any(a.startswith("--source=") for a in self.arguments)

    def note(self, line: str) -> None:
        # A model that writes to all open files may have begun a line.
        os.write(self.notes, f"\n{line}\n".encode())

    def read_notes(self) -> list[str]:
        return os.pread(self.notes, 1 << 16, 0).decode("utf-8", "replace").splitlines()


def _inputs(arguments: Sequence[str]) -> Iterator[str]:
    """The paths among a request's arguments: ``--flag=PATH`` and ``--flag=NAME=PATH``."""
    here = os.getcwd()
    for argument in arguments:
        flag, _, value = argument.partition("=")
        if flag in _NOT_PATHS or flag.startswith("--out"):
            continue
        candidates = [value] + [value[i + 1 :] for i, c in enumerate(value) if c == "="]
        for path in candidates:
            whole = os.path.abspath(path) if path else here
            if f"{here}/".startswith(f"{whole}/") or not os.path.exists(whole):
                continue
            yield from barrier.tree(whole)


def _close_all_but(kept: Collection[int]) -> None:
    """Closes all other files, among them the worker's pipes to Bazel."""
    opened = os.listdir("/proc/self/fd") if os.path.isdir("/proc/self/fd") else range(256)
    for number in map(int, opened):
        if number not in kept:
            with contextlib.suppress(OSError):
                os.close(number)


class EndedByModel(SystemExit):
    """The model called os._exit: treated as an error, so that the traceback has the line."""


def _watch_exit() -> None:
    process, thread = os.getpid(), threading.get_ident()

    def refuse(status: int) -> NoReturn:
        if os.getpid() != process or threading.get_ident() != thread:
            exit_process(status)
        raise EndedByModel(f"os._exit({status})")

    os._exit = refuse


def _killed(number: int) -> str:
    with contextlib.suppress(ValueError):  # real-time signals have no names
        number = signal.Signals(number)
    name = number.name if isinstance(number, signal.Signals) else f"signal {number}"
    text = f"the driver's process was ended by {name}"
    if name == "SIGKILL":
        text += (
            ". As a rule, the machine or the container had no memory left: build with fewer "
            "--jobs, or where there is more memory"
        )
    return text


@contextlib.contextmanager
def _beginning_at(directory: str) -> Iterator[None]:
    before = os.open(".", os.O_RDONLY)
    try:
        try:
            os.chdir(directory)
        except OSError as e:
            raise DriverError(f"{directory}: cannot be entered: {e.strerror}") from None
        yield
    finally:
        os.fchdir(before)
        os.close(before)


def hide() -> None:
    """Prevents other processes of the same user from opening this one's files, for example through
    /proc.
    """
    ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0)
