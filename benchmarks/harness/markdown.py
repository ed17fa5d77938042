"""The report as a page of docs/."""

from __future__ import annotations

from benchmarks.harness.results import CONTESTANTS, Results
from benchmarks.harness.tables import (
    Cell,
    Table,
    all_tables,
    machine_line,
    reasons,
    summary,
    version_line,
)


def cell_text(cell: Cell | None) -> str:
    if cell is None:
        return ""
    if cell.ratio is None or cell.ratio == 1.0:
        return cell.text
    return (
        f"{cell.text} ({cell.ratio:.2g})" if cell.ratio < 10 else f"{cell.text} ({cell.ratio:.0f})"
    )


def table_lines(table: Table) -> list[str]:
    lines = [f"## {table.title}", "", table.note, ""]
    lines.append("| | " + " | ".join(table.contestants) + " |")
    lines.append("|---|" + "---:|" * len(table.contestants))
    for row in table.rows:
        cells = [cell_text(row.cells.get(name)) for name in table.contestants]
        lines.append(f"| {row.title} | " + " | ".join(cells) + " |")
    return [*lines, ""]


def render(results: Results) -> str:
    lines = [
        "# Benchmarks",
        "",
        "Written by `./bazelw run //benchmarks:runtime -- --markdown docs/benchmarks.md`; how it "
        "measures is described in [benchmarks/README.md](../benchmarks/README.md). In parentheses: "
        "relative to slim.",
        "",
        machine_line(results) + " " + version_line(results),
        "",
    ]
    lines += [f"- {line}" for line in summary(results)]
    lines.append("")
    lines += [f"- `{name}`: {CONTESTANTS[name]}" for name in results.contestants()]
    lines.append("")
    for table in all_tables(results):
        if table.rows:
            lines += table_lines(table)
    if found := reasons(results):
        lines += ["## Without a number", ""]
        for (contestant, reason), models in found.items():
            lines.append(f"- {contestant}: {_escaped(reason)} ({', '.join(models)})")
        lines.append("")
    return "\n".join(lines)


def _escaped(text: str) -> str:
    for character in "\\`*_<>[]|":
        text = text.replace(character, "\\" + character)
    return text
