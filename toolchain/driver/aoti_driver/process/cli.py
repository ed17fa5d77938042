"""The command line: one subcommand per kind of action, each imported only when it is run."""

from __future__ import annotations

import argparse
import contextlib
import importlib
import json
import os
import re
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NoReturn

from aoti_driver.base import environment, files
from aoti_driver.base.errors import DriverError

_NO_MEMORY = (
    "no memory is left for this step: build with fewer --jobs, raise the limit (ulimit -v, or the "
    "container's), or build where there is more memory"
)
# torch's messages, in exceptions that are not Python's MemoryError.
_OUT_OF_MEMORY = ("can't allocate memory", "not enough memory", "std::bad_alloc")

# subcommand -> (module of aoti_driver, function that runs it, function that declares its flags)
_COMMANDS = {
    "export": ("export.export", "run", "add_arguments"),
    "import": ("export.import_pt2", "run", "add_arguments"),
    "differentiate": ("export.differentiate", "run", "add_arguments"),
    "thaw": ("frozen.thaw", "run", "add_arguments"),
    "thaw_weights": ("frozen.thaw", "run_weights", "add_weights_arguments"),
    "freeze": ("frozen.freeze", "run", "add_arguments"),
    "frozen_diff": ("frozen.frozen_diff", "run", "add_arguments"),
    "replace_weights": ("artifacts.replace_weights", "run", "add_arguments"),
    "provenance": ("artifacts.provenance", "run", "add_arguments"),
    "info": ("artifacts.info", "run", "add_arguments"),
    "sbom": ("artifacts.sbom", "run", "add_arguments"),
    "codegen": ("inductor.codegen", "run", "add_arguments"),
    "triton_kernel": ("triton_kernel.command", "run", "add_arguments"),
    "shim": ("artifacts.choose_runtime", "run", "add_arguments"),
    "pack": ("artifacts.packed_weights", "run", "add_arguments"),
    "merge_weights": ("artifacts.merge_weights", "run", "add_arguments"),
    "method_bindings": ("bindings.method_bindings", "run", "add_arguments"),
    "bindings": ("bindings.bindings", "run", "add_arguments"),
    "operator": ("bindings.operator", "run", "add_arguments"),
    "package": ("artifacts.package", "run_package", "add_package_arguments"),
    "export_package": ("artifacts.package", "run_export_package", "add_export_package_arguments"),
    "ops": ("artifacts.operator_table", "run", "add_arguments"),
    "ops_diff": ("artifacts.operator_lock", "run_diff", "add_diff_arguments"),
    "ops_update": ("artifacts.operator_lock", "run_update", "add_update_arguments"),
    "report": ("artifacts.report", "run", "add_arguments"),
    "tune": ("verify.tune", "run", "add_arguments"),
    "verify": ("verify.verify", "run", "add_arguments"),
}


def main(argv: Sequence[str]) -> int:
    """Runs one request in this process."""
    try:
        return execute(expand(argv))
    except DriverError as e:
        print(e, file=sys.stderr)
        return 1


def execute(args: Sequence[str], place: Path | None = None) -> int:
    """Runs one request; the exit status is 1 for a user's mistake and 2 for an error of the driver.

    place: a folder for temporary files, which the caller removes.
    """
    scratch = ""
    try:
        if not args or args[0] not in _COMMANDS:
            given = f', got "{args[0]}"' if args else ""
            raise DriverError(f"expected a subcommand ({', '.join(_COMMANDS)}){given}")
        with environment.private_directories(place) as scratch:
            _run(args[0], args[1:])
    except DriverError as e:
        print(scrub(str(e), scratch), file=sys.stderr)
        return 1
    except SystemExit as e:
        print(scrub(_ended(e, args), scratch), file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    except MemoryError:
        print(scrub(f"{label(args)}{_NO_MEMORY}", scratch), file=sys.stderr)
        return 1
    except BaseException as e:
        if error := files.no_room(e):
            print(scrub(f"{label(args)}{files.explain(error)}", scratch), file=sys.stderr)
            return 1
        if any(text in str(e) for text in _OUT_OF_MEMORY):
            print(scrub(f"{label(args)}{_NO_MEMORY}", scratch), file=sys.stderr)
            return 1
        print("internal error of rules_aoti's driver, please report it:", file=sys.stderr)
        print(scrub(traceback.format_exc(), scratch), file=sys.stderr, end="")
        return 2
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
    return 0


def label(args: Sequence[str]) -> str:
    """``//pkg:model: ``, from the request's spec; empty if it has none."""
    for argument in args:
        flag, _, value = argument.partition("=")
        if flag == "--spec":
            with contextlib.suppress(OSError, ValueError, LookupError, TypeError):
                return f"{json.loads(Path(value).read_text('utf-8'))['label']}: "
    return ""


def _ended(error: SystemExit, args: Sequence[str]) -> str:
    """The message for a model that ends the process, with the lines of the model that do so."""
    call = f"sys.exit({error.code!r})" if type(error) is SystemExit else str(error)
    lines = [
        f"  {match[1]}:{frame.lineno} in {frame.name}"
        for frame in traceback.extract_tb(error.__traceback__)
        if (match := re.search(r"/runfiles/(?:_main/)?(.*)", frame.filename))
    ]
    return "\n".join(
        [
            f"{label(args)}the model ends the process that builds it, with {call}:",
            *lines,
            "  A model returns its result, or raises an error. Remove that call.",
        ]
    )


def expand(argv: Sequence[str]) -> list[str]:
    """Replaces ``@file`` by the file's lines, one token per line."""
    tokens: list[str] = []
    for argument in argv:
        if not argument.startswith("@"):
            tokens.append(argument)
            continue
        try:
            with open(argument[1:], encoding="utf-8") as f:
                tokens += f.read().splitlines()
        except OSError as e:
            raise DriverError(f"{argument}: cannot be read: {e.strerror}") from None
    return tokens


def scrub(text: str, scratch: str) -> str:
    """Removes text that differs between machines and runs: temporary folders and the working
    folder.
    """
    if scratch:
        text = re.sub(rf"{re.escape(scratch)}(/tmp/aoti_\w+/runfiles)?/?", "", text)
    return text.replace(os.getcwd() + "/", "")


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise DriverError(f"{self.prog}: {message}")


def _run(command: str, args: Sequence[str]) -> None:
    name, run_name, arguments_name = _COMMANDS[command]
    module = importlib.import_module(f"aoti_driver.{name}")
    parser = _Parser(prog=command, allow_abbrev=False, add_help=False)
    add_arguments: Callable[[argparse.ArgumentParser], None] = getattr(module, arguments_name)
    add_arguments(parser)
    run: Callable[[argparse.Namespace], None] = getattr(module, run_name)
    run(parser.parse_args(args))
