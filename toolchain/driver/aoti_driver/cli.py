"""The command line: one subcommand per kind of action, each imported only when it is run."""

from __future__ import annotations

import argparse
import importlib
import os
import re
import sys
import traceback
from collections.abc import Callable, Sequence
from typing import NoReturn

from aoti_driver import environment
from aoti_driver.errors import DriverError

# subcommand -> (module, function that runs it, function that declares its flags)
_COMMANDS = {
    "export": ("export", "run", "add_arguments"),
    "import": ("torch_import", "run", "add_arguments"),
    "thaw": ("thaw", "run", "add_arguments"),
    "thaw_weights": ("thaw", "run_weights", "add_weights_arguments"),
    "freeze": ("freeze", "run", "add_arguments"),
    "frozen_diff": ("frozen_diff", "run", "add_arguments"),
    "replace_weights": ("replace_weights", "run", "add_arguments"),
    "provenance": ("provenance", "run", "add_arguments"),
    "info": ("info", "run", "add_arguments"),
    "sbom": ("sbom", "run", "add_arguments"),
    "codegen": ("codegen", "run", "add_arguments"),
    "shim": ("shim", "run", "add_arguments"),
    "pack": ("pack", "run", "add_arguments"),
    "bindings": ("bindings", "run", "add_arguments"),
    "package": ("package", "run_package", "add_package_arguments"),
    "export_package": ("package", "run_export_package", "add_export_package_arguments"),
    "report": ("report", "run", "add_arguments"),
    "verify": ("verify", "run", "add_arguments"),
}


def main(argv: Sequence[str]) -> int:
    """Runs one request; the exit status is 1 for a user's mistake, 2 for one of the driver."""
    scratch = ""
    try:
        args = expand(argv)
        if not args or args[0] not in _COMMANDS:
            given = f', got "{args[0]}"' if args else ""
            raise DriverError(f"expected a subcommand ({', '.join(_COMMANDS)}){given}")
        with environment.private_directories() as scratch:
            _run(args[0], args[1:])
    except DriverError as e:
        print(scrub(str(e), scratch), file=sys.stderr)
        return 1
    except SystemExit as e:
        return e.code if isinstance(e.code, int) else 1
    except KeyboardInterrupt:
        return 130
    except BaseException:
        print("internal error of rules_aoti's driver, please report it:", file=sys.stderr)
        print(scrub(traceback.format_exc(), scratch), file=sys.stderr, end="")
        return 2
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
    return 0


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
    """Removes what differs between machines and runs: temporary folders and the working one."""
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
