"""The report as a page of docs/."""

from __future__ import annotations

from benchmarks.harness.results import CONTESTANTS, Results
from benchmarks.harness.slower import SLOWER_NOTE, SLOWER_TITLE, explained, known_reasons
from benchmarks.harness.tables import (
    Cell,
    Table,
    all_tables,
    machine_line,
    reasons,
    row_title,
    summary,
    version_line,
)


def cell_text(cell: Cell | None) -> str:
    if cell is None:
        return ""
    text = f"{cell.text} {cell.mark}".rstrip()
    if cell.ratio is None or cell.ratio == 1.0:
        return text
    return f"{text} ({cell.ratio:.3g})" if cell.ratio < 10 else f"{text} ({cell.ratio:.0f})"


def table_lines(table: Table) -> list[str]:
    lines = [f"## {table.title}", "", table.note, ""]
    lines.append("| | " + " | ".join(table.contestants) + " |")
    lines.append("|---|" + "---:|" * len(table.contestants))
    for row in table.rows:
        cells = [cell_text(row.cells.get(name)) for name in table.contestants]
        lines.append(f"| {row.title} | " + " | ".join(cells) + " |")
    return [*lines, ""]


def slower_lines(results: Results) -> list[str]:
    """The section on where slim is not the fastest; nothing if it always is."""
    found = explained(results, known_reasons())
    if not found:
        return []
    lines = [
        f"## {SLOWER_TITLE}",
        "",
        SLOWER_NOTE,
        "",
        "| | slim | peer | why |",
        "|---|---:|---|---|",
    ]
    for comparison, reason in found:
        title = row_title(results, comparison.model, comparison.case, comparison.threads)
        peer = CONTESTANTS[comparison.peer]
        lines.append(f"| {title} | {comparison.ratio:.2f} | {peer} | {reason} |")
    return [*lines, ""]


def render(results: Results) -> str:
    lines = [
        "# Benchmarks",
        "",
        "Written by `./bazelw run //benchmarks:runtime -- --markdown docs/benchmarks.md`; how it "
        "measures is described in [benchmarks/README.md](../benchmarks/README.md). In parentheses: "
        "relative to slim. The same with charts: [benchmarks.html](benchmarks.html).",
        "",
        machine_line(results) + " " + version_line(results),
        "",
    ]
    lines += [f"- {line}" for line in summary(results)]
    lines.append("")
    lines += [f"- `{name}`: {CONTESTANTS[name]}" for name in results.contestants()]
    lines.append("")
    lines += slower_lines(results)
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
