"""Charts as SVG: one dot per contestant, on a logarithmic axis of ratios.

A line through a dot goes from one quartile of the rounds to the other.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

from benchmarks.harness.results import CONTESTANTS
from benchmarks.harness.tables import Row

WIDTH = 960
LABELS = 330  # what the titles of the rows take
MARGIN = 24
ROW = 26
TOP = 28
RADIUS = 5.5


def axis_ends(values: Sequence[float]) -> tuple[float, float]:
    """Steps of 1, 2, 5 around all values, and around 1."""
    low = min([*values, 1.0])
    high = max([*values, 1.0])
    return (
        max(step for step in _steps_near(low) if step <= low * 1.0001),
        min(step for step in _steps_near(high) if step >= high * 0.9999),
    )


_STEPS = (1, 2, 5)


def _steps_near(value: float) -> list[float]:
    exponent = math.floor(math.log10(value))
    return [step * 10.0**e for e in range(exponent - 1, exponent + 2) for step in _STEPS]


def ticks(low: float, high: float) -> list[float]:
    """The steps between the ends; powers of ten alone where there are many."""
    exponents = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    wide = high / low > 1000
    marks = [step * 10.0**e for e in exponents for step in ((1,) if wide else _STEPS)]
    return [mark for mark in marks if low * 0.999 <= mark <= high * 1.001]


def position(value: float, low: float, high: float) -> float:
    """Where on the axis, in pixels."""
    if high == low:
        return LABELS + (WIDTH - LABELS) / 2
    share = math.log(value / low) / math.log(high / low)
    return LABELS + MARGIN + share * (WIDTH - LABELS - 2 * MARGIN)


def number(value: float) -> str:
    return f"{value:g}"


def dot_plot(title: str, rows: Sequence[Row]) -> str:
    """The rows' ratios; each dot's tooltip tells its number."""
    values = [c.ratio for row in rows for c in row.cells.values() if c.ratio and c.ratio > 0]
    if not values:
        return ""
    low, high = axis_ends(values)
    height = TOP + ROW * len(rows) + 8
    parts = [
        f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{escape(title)}">',
    ]
    for mark in ticks(low, high):
        x = position(mark, low, high)
        kind = "one" if mark == 1 else "grid"
        parts.append(f'<line class="{kind}" x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" y2="{height}"/>')
        parts.append(f'<text class="tick" x="{x:.1f}" y="{TOP - 10}">{number(mark)}</text>')
    for i, row in enumerate(rows):
        y = TOP + ROW * i + ROW / 2
        parts.append(
            f'<text class="label" x="{LABELS - 8}" y="{y + 4:.1f}">{escape(row.title)}</text>'
        )
        parts += _dots(row, y, low, high)
    return "\n".join([*parts, "</svg>"])


def _dots(row: Row, y: float, low: float, high: float) -> list[str]:
    dots = []
    # The last one drawn lies on top: slim.
    for name in reversed(list(row.cells)):
        cell = row.cells[name]
        if not cell.ratio or cell.ratio <= 0:
            continue
        x = position(cell.ratio, low, high)
        tip = f"{CONTESTANTS[name]}: {cell.text} {cell.mark}".rstrip() + f" ({cell.ratio:.2f})"
        if cell.ends and cell.ends[0] < cell.ends[1]:
            left, right = (position(min(max(e, low), high), low, high) for e in cell.ends)
            dots.append(
                f'<line class="spread" x1="{left:.1f}" x2="{right:.1f}" y1="{y:.1f}" y2="{y:.1f}"/>'
            )
        dots.append(
            f'<circle class="{css_class(name)}" cx="{x:.1f}" cy="{y:.1f}" r="{RADIUS}">'
            f"<title>{escape(tip)}</title></circle>"
        )
    return dots


def css_class(contestant: str) -> str:
    return "c-" + contestant.replace(".", "-")


def legend(contestants: Sequence[str]) -> str:
    items = [
        f'<span><svg viewBox="0 0 12 12" class="key"><circle class="{css_class(name)}" cx="6" '
        f'cy="6" r="5"/></svg>{escape(CONTESTANTS[name])}</span>'
        for name in contestants
    ]
    return f'<p class="legend">{" ".join(items)}</p>'
