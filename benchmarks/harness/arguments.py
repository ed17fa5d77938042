"""The flags that the benchmarks of a suite's models have in common."""

from __future__ import annotations

import argparse
import os
from collections.abc import Collection, Sequence
from pathlib import Path


def parser(
    doc: str | None, models: Sequence[str], contestants: Collection[str]
) -> argparse.ArgumentParser:
    """--contestants is empty unless it is given."""
    made = argparse.ArgumentParser(description=doc)
    made.add_argument("--models", nargs="+", choices=models, default=models, metavar="MODEL")
    made.add_argument(
        "--contestants", nargs="+", choices=contestants, default=[], metavar="CONTESTANT"
    )
    made.add_argument("--quick", action="store_true", help="little effort, to see that it works")
    made.add_argument("--rounds", type=int, help="of each case (5; at most 15 with --minutes)")
    made.add_argument(
        "--minutes", type=float, help="how long to measure, when everything is prepared"
    )
    made.add_argument("--out", type=Path, default=Path("benchmark-results"))
    made.add_argument("--cache", type=Path, help="where the contestants' files are kept")
    made.add_argument(
        "--markdown",
        type=Path,
        help="also write the numbers as this page, and charts, if there are some, beside it",
    )
    made.add_argument("--from-json", type=Path, help="report on these results, measure nothing")
    made.epilog = "models: " + ", ".join(models) + "; contestants: " + ", ".join(contestants)
    return made


def parsed(of: argparse.ArgumentParser) -> argparse.Namespace:
    """The flags of this program; paths are relative to where the user called Bazel."""
    args = of.parse_args()
    here = Path(os.environ.get("BUILD_WORKING_DIRECTORY", "."))
    for name in ("out", "cache", "markdown", "from_json"):
        if getattr(args, name):
            setattr(args, name, here / getattr(args, name))
    return args
