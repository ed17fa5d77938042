"""The report as text."""

from __future__ import annotations

from benchmarks.harness.results import CONTESTANTS, Results
from benchmarks.harness.slower import explained, known_reasons
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


def cell_text(cell: Cell | None, first: bool) -> str:
    """Slim's own number; of the others the ratio."""
    if cell is None:
        return ""
    if cell.ratio is None or first:
        return cell.text
    return f"{cell.ratio:.2f}" if cell.ratio < 100 else f"{cell.ratio:.0f}"


def aligned(rows: list[list[str]]) -> list[str]:
    """Columns as wide as needed, all but the first one to the right."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = []
    for row in rows:
        cells = [row[0].ljust(widths[0])]
        cells += [cell.rjust(width) for cell, width in zip(row[1:], widths[1:])]
        lines.append("  ".join(cells).rstrip())
    return lines


def table_text(table: Table) -> str:
    if not table.rows:
        return ""
    names = table.contestants
    rows = [["", *names]]
    for row in table.rows:
        unit = next((name for name in names if row.cells.get(name, Cell("")).ratio == 1.0), "")
        rows.append([row.title, *(cell_text(row.cells.get(n), n == unit) for n in names)])
    return "\n".join([f"{table.title}. {table.note}", *aligned(rows), ""])


def render(results: Results) -> str:
    parts = [machine_line(results), version_line(results)]
    parts.append("Numbers without a unit are relative to slim (slim = 1.00).\n")
    parts += [text for table in all_tables(results) if (text := table_text(table))]
    for (contestant, reason), models in reasons(results).items():
        parts.append(f"{contestant}: {reason} ({', '.join(models)})")
    slower = [
        f"{row_title(results, c.model, c.case, c.threads)}: {c.ratio:.2f} of "
        f"{CONTESTANTS[c.peer]}: {reason}"
        for c, reason in explained(results, known_reasons())
    ]
    return "\n".join([*parts, "", *summary(results), *slower])
