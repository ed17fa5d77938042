"""A driver whose subcommand ``bindings`` does what the request says: a worker without torch."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.unit.driver.harness import DRIVER

FRONT = (
    "__init__",
    "base/__init__",
    "base/environment",
    "base/errors",
    "base/files",
    "base/interruption",
    "bindings/__init__",
    "process/__init__",
    "process/barrier",
    "process/children",
    "process/cli",
    "process/landlock",
    "process/preloaded",
    "process/seccomp",
    "process/staging",
    "process/supervise",
    "process/worker",
)

# Stands in for a subcommand's module: what a request does is in its flag.
FAKE = """
import os, signal, sys, tempfile

def add_arguments(parser):
    parser.add_argument("--do")
    parser.add_argument("--input")
    parser.add_argument("--source")
    parser.add_argument("--out")

def run(args):
    from aoti_driver.base.errors import DriverError
    if args.do == "crash":
        os.kill(os.getpid(), signal.SIGSEGV)
    if args.do == "fail":
        raise DriverError("//a:b: the user's mistake")
    if args.do == "bug":
        raise ZeroDivisionError("a bug")
    if args.do == "leak":
        os.environ["LEAKED"] = "1"
        sys.modules["leaked"] = sys
    if args.do.startswith("run "):
        exec(args.do.removeprefix("run "), {"args": args})
        return
    print("cwd", os.getcwd(), "leaked" in sys.modules, sorted(os.environ), os.environ["HOME"])
    print("temporary", tempfile.mkdtemp())
    print("torch", sorted(name for name in sys.modules if name.startswith("torch")))
"""


def make_driver(tmp_path: Path) -> list[str]:
    """The command of main.py with a copy of the front, whose ``bindings`` is the fake."""
    package = tmp_path / "driver" / "aoti_driver"
    package.mkdir(parents=True)
    for name in FRONT:
        (package / name).parent.mkdir(exist_ok=True)
        text = (DRIVER / "aoti_driver" / f"{name}.py").read_text(encoding="utf-8")
        (package / f"{name}.py").write_text(text, encoding="utf-8")
    (package / "bindings" / "bindings.py").write_text(FAKE, encoding="utf-8")
    main = tmp_path / "driver" / "main.py"
    main.write_text((DRIVER / "main.py").read_text(encoding="utf-8"), encoding="utf-8")
    (tmp_path / "site").mkdir()
    return [sys.executable, "-I", "-S", str(main), f"--site={tmp_path / 'site'}"]


def talk(driver: list[str], *requests: dict[str, Any] | str, **env: str) -> list[dict[str, Any]]:
    lines = [r if isinstance(r, str) else json.dumps(r) for r in requests]
    done = subprocess.run(
        [*driver, "--persistent_worker"],
        input="".join(f"{line}\n" for line in lines),
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, **env},
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def request(do: str, **more: Any) -> dict[str, Any]:
    return {"arguments": ["bindings", f"--do={do}"], "inputs": [], **more}
