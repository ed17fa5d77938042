"""The report as one HTML file that needs nothing else."""

from __future__ import annotations

from html import escape

from benchmarks.harness import charts
from benchmarks.harness.markdown import cell_text
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

_STYLE = """
:root {
  color-scheme: light dark;
  --text: #1b1f24; --soft: #5b6470; --line: #d9dee4; --back: #ffffff; --panel: #f6f8fa;
  --slim4: #d1242f; --slim3: #f2938c; --lib4: #0550ae; --lib3: #7fb2ee; --eager: #8a5a00;
  --compile: #d4a72c; --ort: #1a7f37; --ov: #8250df; --llama: #0a8a8a;
}
@media (prefers-color-scheme: dark) {
  :root {
    --text: #e6e9ed; --soft: #9aa4af; --line: #343b44; --back: #14171b; --panel: #1c2026;
    --slim4: #ff6b63; --slim3: #b2504b; --lib4: #6cb0ff; --lib3: #3a6ea8; --eager: #c98f3a;
    --compile: #f0cf65; --ort: #57c26d; --ov: #b58cff; --llama: #45c8c8;
  }
}
body {
  margin: 0 auto; max-width: 1100px; padding: 2rem 1.25rem 4rem; background: var(--back);
  color: var(--text); font: 16px/1.55 system-ui, sans-serif;
}
h1 { font-size: 1.7rem; margin: 0 0 .5rem; }
h2 { font-size: 1.2rem; margin: 2.5rem 0 .25rem; }
p.note, .machine { color: var(--soft); margin: .25rem 0 .75rem; }
svg { width: 100%; height: auto; display: block; }
svg text { font: 12.5px system-ui, sans-serif; fill: var(--text); }
svg .label { text-anchor: end; }
svg .tick { text-anchor: middle; fill: var(--soft); }
svg line.grid { stroke: var(--line); }
svg line.one { stroke: var(--soft); stroke-width: 1.5; }
svg line.spread { stroke: var(--soft); stroke-width: 3; }
svg circle { stroke: var(--back); stroke-width: 1.2; }
svg.key { width: .8rem; height: .8rem; display: inline-block; margin-right: .35rem; }
.legend { display: flex; flex-wrap: wrap; gap: .25rem 1.25rem; font-size: .9rem; }
.legend span { white-space: nowrap; }
.c-slim-v4 { fill: var(--slim4); } .c-slim-v3 { fill: var(--slim3); }
.c-libtorch-v4 { fill: var(--lib4); } .c-libtorch-v3 { fill: var(--lib3); }
.c-eager { fill: var(--eager); } .c-compile { fill: var(--compile); }
.c-onnxruntime { fill: var(--ort); } .c-openvino { fill: var(--ov); }
.c-llama-cpp { fill: var(--llama); }
.chart { background: var(--panel); border-radius: 8px; padding: .75rem 1rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: .85rem; font-variant-numeric: tabular-nums; }
th, td { padding: .25rem .6rem; border-bottom: 1px solid var(--line); text-align: right; }
th:first-child, td:first-child { text-align: left; }
td { white-space: nowrap; }
table.text td { white-space: normal; text-align: left; }
td.wrong { color: var(--slim4); font-weight: 600; }
details summary { cursor: pointer; color: var(--soft); margin: .6rem 0; }
"""


def _cell(cell: Cell | None) -> str:
    if cell is None:
        return "<td></td>"
    if cell.problem:
        kind = ' class="wrong"' if cell.text == "WRONG" else ""
        return f'<td{kind} title="{escape(cell.problem)}">{escape(cell.text)}</td>'
    return f"<td>{escape(cell_text(cell))}</td>"


def _table(table: Table) -> str:
    heads = "".join(f"<th>{escape(name)}</th>" for name in table.contestants)
    rows = "\n".join(
        f"<tr><td>{escape(row.title)}</td>"
        + "".join(_cell(row.cells.get(name)) for name in table.contestants)
        + "</tr>"
        for row in table.rows
    )
    return (
        '<div class="scroll"><table><thead><tr><th></th>'
        f"{heads}</tr></thead><tbody>\n{rows}\n</tbody></table></div>"
    )


def _section(table: Table) -> str:
    chart = charts.dot_plot(table.title, table.rows)
    return "\n".join(
        [
            f"<section><h2>{escape(table.title)}</h2>",
            f'<p class="note">{escape(table.note)}</p>',
            f'<div class="chart">{chart}</div>' if chart else "",
            f"<details><summary>Numbers</summary>{_table(table)}</details></section>",
        ]
    )


def _slower(results: Results) -> str:
    found = explained(results, known_reasons())
    if not found:
        return ""
    rows = "\n".join(
        f"<tr><td>{escape(row_title(results, c.model, c.case, c.threads))}</td>"
        f"<td>{c.ratio:.2f}</td><td>{escape(CONTESTANTS[c.peer])}</td><td>{escape(reason)}</td></tr>"
        for c, reason in found
    )
    return (
        f'<section><h2>{SLOWER_TITLE}</h2><p class="note">{escape(SLOWER_NOTE)}</p>'
        '<div class="scroll"><table class="text"><thead><tr><th></th><th>slim</th><th>peer</th>'
        f"<th>why</th></tr></thead><tbody>\n{rows}\n</tbody></table></div></section>"
    )


def _problems(results: Results) -> str:
    found = reasons(results)
    if not found:
        return ""
    items = "\n".join(
        f"<li><b>{escape(contestant)}</b>: {escape(reason)} ({escape(', '.join(models))})</li>"
        for (contestant, reason), models in found.items()
    )
    return f"<section><h2>Without a number</h2><ul>{items}</ul></section>"


def render(results: Results) -> str:
    findings = "\n".join(f"<p>{escape(line)}</p>" for line in summary(results))
    sections = "\n".join(_section(table) for table in all_tables(results) if table.rows)
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>rules_aoti: runtime benchmark</title>
<style>{_STYLE}</style>
</head>
<body>
<h1>Runtime benchmark</h1>
<p class="machine">{escape(machine_line(results))} {escape(version_line(results))}</p>
{findings}
<p class="note">Charts show ratios: slim is 1, and for all but tokens per second less is better.
A grey line through a dot is the spread: from one quartile of the rounds to the other. Point at a
dot for its number.</p>
{charts.legend(results.contestants())}
{_slower(results)}
{sections}
{_problems(results)}
</body>
</html>
"""
