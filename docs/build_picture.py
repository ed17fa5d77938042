"""Draws docs/build.svg: a model's way from its source to C++, Python and a `.pt2` package.

usage: python docs/build_picture.py        writes the file anew

Each file is a box, each action an arrow. The dots on an arrow say which kinds of changes run it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import escape

PICTURE = Path(__file__).with_name("build.svg")


@dataclass(frozen=True)
class Box:
    """A file, or files, at a column and a row of the picture."""

    text: str
    detail: str
    column: float
    row: float


@dataclass(frozen=True)
class Action:
    """An arrow between two boxes; the mnemonic is written on it once."""

    source: str
    target: str
    mnemonic: str = ""
    changes: str = ""
    early: bool = False  # whether a long arrow leaves its row at once, not before the last column


BOXES = {
    "source": Box("source", "encoder_model.py", 0, 0.5),
    "trained": Box("weights", ".safetensors, .pt", 0, 2),
    "graph": Box("graph", "and manifest", 1, 0.5),
    "weights": Box("weights file", "safetensors", 1, 2),
    "kernels": Box("kernels", "generated C++", 2, 0),
    "bindings": Box("bindings", "header, module", 2, 1),
    "program": Box("program", "static library", 3, 0.5),
    "packed": Box("weights file", "packed for slim", 3, 2),
    "cc": Box("C++", "cc_binary", 4, 0),
    "python": Box("Python", "py_binary", 4, 1),
    "pt2": Box("name.pt2", "stock PyTorch", 4, 2.8),
}

# change -> (colour, what it is called)
CHANGES = {
    "c": ("#8250df", "a comment in the source"),
    "m": ("#1f6feb", "another layer in the source"),
    "w": ("#d29922", "other weights"),
    "i": ("#2da44e", "another instruction set"),
}

ACTIONS = [
    Action("source", "graph", "TorchExport", "cmw"),
    Action("trained", "weights"),
    Action("source", "weights"),
    Action("graph", "kernels", "AotiCodegen", "mi"),
    Action("graph", "bindings", "AotiBindings", "mi"),
    Action("kernels", "program", "CppCompile", "mi"),
    Action("bindings", "program"),
    Action("weights", "packed", "AotiPackWeights", "mwi"),
    Action("program", "cc", "CppLink", "mi"),
    Action("program", "python"),
    Action("program", "pt2"),
    Action("packed", "cc"),
    Action("packed", "python"),
    Action("weights", "pt2", "AotiPackage", "mwi", early=True),
]

_WIDTH, _HEIGHT = 112, 44
_STEP_X, _STEP_Y = 204, 78
_LEFT, _TOP = 14, 26
_STYLE = """\
text { font: 13px system-ui, sans-serif; fill: #1f2328; text-anchor: middle }
.detail, .key { font-size: 11px; fill: #59636e }
.key { text-anchor: start }
.mnemonic { font: 11px ui-monospace, monospace; fill: #1f2328 }
.box { fill: #f6f8fa; stroke: #818b98 }
.arrow { fill: none; stroke: #818b98; marker-end: url(#end) }
@media (prefers-color-scheme: dark) {
  text, .mnemonic { fill: #e6edf3 } .detail, .key { fill: #9198a1 } .box { fill: #161b22 }
}"""


def _corner(box: Box) -> tuple[float, float]:
    return _LEFT + box.column * _STEP_X, _TOP + box.row * _STEP_Y


def _box(box: Box) -> list[str]:
    x, y = _corner(box)
    middle = x + _WIDTH / 2
    return [
        f'<rect class="box" x="{x:g}" y="{y:g}" width="{_WIDTH}" height="{_HEIGHT}" rx="6"/>',
        f'<text x="{middle:g}" y="{y + 19:g}">{escape(box.text)}</text>',
        f'<text class="detail" x="{middle:g}" y="{y + 35:g}">{escape(box.detail)}</text>',
    ]


def _arrow(action: Action) -> list[str]:
    start, end = _corner(BOXES[action.source]), _corner(BOXES[action.target])
    x1, y1 = start[0] + _WIDTH, start[1] + _HEIGHT / 2
    x2, y2 = end[0] - 3, end[1] + _HEIGHT / 2
    gap = _STEP_X - _WIDTH - 3
    bend = x1 if action.early else x2 - gap
    middle, after = bend + gap / 2, bend + gap
    path = f"M{x1:g} {y1:g} H{bend:g} C{middle:g} {y1:g} {middle:g} {y2:g} {after:g} {y2:g} H{x2:g}"
    lines = [f'<path class="arrow" d="{path}"/>']
    if action.mnemonic:
        # Above a straight arrow, before the gap of an early one, else above or below the bend.
        if y1 == y2:
            x, y = (x1 + x2) / 2, y1 - 20
        elif action.early:
            x, y = x2 - 1.7 * gap, y2 - 20
        else:
            x, y = x1 + gap / 2, (y1 + y2) / 2 + (16 if y2 > y1 else -20)
        lines.append(f'<text class="mnemonic" x="{x:g}" y="{y:g}">{action.mnemonic}</text>')
        first = x - 6 * (len(action.changes) - 1)
        lines += [
            f'<circle cx="{first + 12 * i:g}" cy="{y + 9:g}" r="4" fill="{CHANGES[change][0]}"/>'
            for i, change in enumerate(action.changes)
        ]
    return lines


def _key(y: float) -> list[str]:
    lines = [f'<text class="key" x="{_LEFT}" y="{y + 4:g}">A change runs again:</text>']
    x = _LEFT + 130.0
    for colour, name in CHANGES.values():
        lines.append(f'<circle cx="{x:g}" cy="{y:g}" r="4" fill="{colour}"/>')
        lines.append(f'<text class="key" x="{x + 9:g}" y="{y + 4:g}">{escape(name)}</text>')
        x += 36 + 6.1 * len(name)
    return lines


def picture() -> str:
    """The SVG document."""
    width = 2 * _LEFT + 4 * _STEP_X + _WIDTH
    height = round(_TOP + 2.8 * _STEP_Y + _HEIGHT + 50)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">',
        "<title>From a model's source to C++, Python and .pt2</title>",
        f"<style>\n{_STYLE}\n</style>",
        '<defs><marker id="end" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
        'markerHeight="7" orient="auto"><path d="M0 0 8 4 0 8z" fill="#818b98"/></marker></defs>',
    ]
    for action in ACTIONS:
        lines += _arrow(action)
    for box in BOXES.values():
        lines += _box(box)
    return "\n".join([*lines, *_key(height - 18), "</svg>", ""])


if __name__ == "__main__":
    PICTURE.write_text(picture(), encoding="utf-8")
