"""What a benchmark leaves behind: its results as JSON, reports on them, and a printed one."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Protocol, TypeVar

from benchmarks.harness.measure import note


class _Results(Protocol):
    def to_json(self) -> str: ...


_R = TypeVar("_R", bound=_Results)


def report(
    args: argparse.Namespace,
    name: str,
    measure: Callable[[], _R | None],
    read: Callable[[str], _R],
    text: Callable[[_R], str],
    markdown: Callable[[_R], str],
    html: Callable[[_R], str] | None = None,
) -> None:
    """Reports on what was measured, or on what --from-json names; on nothing if there is nothing.

    args: the flags of arguments.py. name: of the files in --out.
    """
    results = read(args.from_json.read_text(encoding="utf-8")) if args.from_json else measure()
    if results is None:
        return
    files = {f"{name}.json": results.to_json() + "\n"}
    if html is not None:
        files[f"{name}.html"] = html(results)
    args.out.mkdir(parents=True, exist_ok=True)
    for file, content in files.items():
        (args.out / file).write_text(content, encoding="utf-8")
    if args.markdown:
        args.markdown.write_text(markdown(results), encoding="utf-8")
        if html is not None:
            page = args.markdown.with_suffix(".html")
            page.write_text(files[f"{name}.html"], encoding="utf-8")
    print(text(results))
    note(f"written to {args.out}/{' and '.join(files)}")
