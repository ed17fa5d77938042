"""Prepares Bazel for a workspace and prints the command to call: `python3 tools/airgap --help`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from airgap.base import AirgapError
from airgap.environment import ensure, locate


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="tools/airgap", description=__doc__)
    parser.add_argument("--cache", type=Path, required=True, help="where everything is kept")
    parser.add_argument(
        "workspaces", nargs="+", type=Path, help="folders whose MODULE.bazel is to be served"
    )
    arguments = parser.parse_args()
    try:
        print(ensure(locate(arguments.cache, arguments.workspaces)))
    except AirgapError as error:
        sys.exit(f"tools/airgap: {error}")


if __name__ == "__main__":
    main()
