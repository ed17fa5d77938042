"""Runs Bazel in one of the modules of tests/e2e, from inside a test of this workspace."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

# Long enough for a first build on a slow machine; Bazel's own test timeout usually comes first.
_TIMEOUT_S = 3000

# What every model with a C++ and a Python binding is linked with.
_RUNTIME = ["runtime", "runtime/python", "runtime/slim"]

_FAILED_TARGET = re.compile(r"\(from target (?:@@)?(?P<label>//[^)]*)\)")
_BAZELS_OWN = re.compile(
    r"^(ERROR|INFO|WARNING|DEBUG|FAILED|Target|Use --|Loading|Analyzing|\[[\d,]+ /)"
)


def workspace() -> Path:
    """The source tree: the runfile of MODULE.bazel is a link into it."""
    module = Path(os.environ["TEST_SRCDIR"], os.environ["TEST_WORKSPACE"], "MODULE.bazel")
    return module.resolve(strict=True).parent


def state() -> Path:
    """Where nested builds keep their outputs: in this build's own output base.

    They are found again by the next run, and `bazel clean --expunge` removes them.
    """
    runfiles = Path(os.environ["TEST_SRCDIR"])
    for parent in runfiles.parents:
        if parent.name == "execroot":
            return parent.parent / "nested"
    raise RuntimeError(f"not in a Bazel output tree: {runfiles}")


def copy_workspace(place: Path) -> None:
    """Copies the source tree, without what a build left in it and the user's own settings."""
    shutil.rmtree(place, ignore_errors=True)
    ignored = shutil.ignore_patterns("bazel-*", ".git", "__pycache__", ".*_cache", "user.bazelrc")
    shutil.copytree(workspace(), place, ignore=ignored, symlinks=True)


def remove(folder: Path) -> None:
    """Bazel leaves read-only folders behind."""
    for path in [folder, *folder.rglob("*")]:
        if path.is_dir() and not path.is_symlink():
            path.chmod(0o755)
    shutil.rmtree(folder)


@dataclass(frozen=True)
class Run:
    """A finished command: its exit code and everything it printed."""

    code: int
    text: str

    def messages(self) -> dict[str, str]:
        """What the failed actions printed themselves, by the target that they belong to."""
        messages: dict[str, list[str]] = {}
        current: list[str] = []
        for line in self.text.splitlines():
            if match := _FAILED_TARGET.search(line):
                current = messages.setdefault(match["label"], [])
            elif _BAZELS_OWN.match(line):
                current = []
            else:
                current.append(line)
        return {label: "\n".join(lines).strip() for label, lines in messages.items()}


class NestedBazel:
    """Bazel in the module `tests/e2e/<name>`, as a user of that module would run it.

    module: another folder in place of it. environment: variables to add. prefix: a command that
    runs Bazel, such as `taskset`. disk_cache: the name of the cache that it shares with others.
    timeout_s: for one command.
    """

    def __init__(
        self,
        name: str,
        *,
        module: Path | None = None,
        environment: Mapping[str, str] | None = None,
        prefix: Sequence[str] = (),
        disk_cache: str = "disk_cache",
        timeout_s: float = _TIMEOUT_S,
    ) -> None:
        self.module = module or workspace() / "tests" / "e2e" / name
        own = self.module / "bazelw"
        self._bazelw = own if own.is_file() else workspace() / "bazelw"
        self._output_base = state() / name
        self._environment = dict(environment or {})
        self._prefix = list(prefix)
        self._timeout_s = timeout_s
        self._disk_cache_name = disk_cache

    def run(self, command: str, *arguments: str, check: bool = True) -> Run:
        """Runs `bazel <command> <arguments>`; with `check`, a failure fails the test."""
        result = self._bazel(
            [command, "--color=no", "--curses=no", "--lockfile_mode=off", *self._flags(command)],
            arguments,
        )
        run = Run(result.returncode, result.stdout)
        if check and run.code:
            raise AssertionError(f"bazel {command} in {self.module.name}:\n{run.text}")
        return run

    def compile_runtime(self) -> None:
        """Compiles the runtime into the shared disk cache, unless another module has done so.

        The first of the tests that share the cache does it; the others wait for it here, so that
        the machine compiles the runtime once.
        """
        done = state() / f"{self._disk_cache_name}.runtime"
        done.parent.mkdir(parents=True, exist_ok=True)
        with done.with_suffix(".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not done.exists():
                self.run("build", *(f"@rules_aoti//{package}" for package in _RUNTIME))
                done.touch()

    def output(self, *arguments: str) -> str:
        """What Bazel prints on stdout: for `info`, `query` and their like."""
        return self._bazel(arguments[:1], arguments[1:], stderr=None).stdout.strip()

    def shutdown(self) -> None:
        """Gives the server's memory back; its outputs stay."""
        self._bazel(["shutdown"], [])

    def close(self) -> None:
        """At the end of a test. Outputs stay for the next run, unless NESTED_OUTPUTS=removed: those
        of all tests together fill a small disk.
        """
        self.shutdown()
        if os.environ.get("NESTED_OUTPUTS") == "removed":
            remove(self._output_base)

    def _flags(self, command: str) -> list[str]:
        if command not in ("build", "test", "run", "cquery", "aquery"):
            return []
        # No links in the source tree, which this build may be reading.
        # And no lines of progress, so that what went wrong is what a failed test shows.
        quiet = ["--noverbose_failures", "--noshow_progress"]
        disk_cache = f"--disk_cache={state() / self._disk_cache_name}"
        return [disk_cache, "--symlink_prefix=/", *quiet]

    def _bazel(
        self,
        command: Sequence[str],
        arguments: Sequence[str],
        stderr: int | None = subprocess.STDOUT,
    ) -> subprocess.CompletedProcess[str]:
        # A test's own variables would make the nested build another one for each test.
        env = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("TEST_", "RUNFILES", "BUILD_", "PYTHON", "JAVA_"))
            and name not in ("TMPDIR", "RUN_UNDER_RUNFILES", "COVERAGE_DIR", "XML_OUTPUT_FILE")
        }
        env.update(self._environment)
        # Two servers share the machine's memory with what they run.
        # The optimizing compiler takes half of the server's time in its first minute, and few of
        # these servers live much longer.
        jvm = ["-Xmx2g", "-XX:TieredStopAtLevel=1"]
        startup = [
            f"--output_base={self._output_base}",
            "--max_idle_secs=60",
            *(f"--host_jvm_args={flag}" for flag in jvm),
        ]
        # What runs beside it has a time limit of its own, and may have a short one.
        bazel = ["nice", *self._prefix, sys.executable, str(self._bazelw), *startup]
        try:
            return subprocess.run(
                [*bazel, *command, *arguments],
                cwd=self.module,
                env=env,
                stdout=subprocess.PIPE,
                stderr=stderr,
                text=True,
                timeout=self._timeout_s,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            # Bytes, whatever `text` says.
            printed = (error.stdout or b"").decode(errors="replace")
            raise AssertionError(
                f"bazel {command[0]} in {self.module.name} has not ended after "
                f"{self._timeout_s:.0f} s; it printed:\n{printed}"
            ) from None
