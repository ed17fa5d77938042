"""Text for generated files: string literals, comments, templates."""

from __future__ import annotations

import re
from typing import Any


def cpp_string(text: str) -> str:
    """A C++ string literal of the text in UTF-8."""

    def escape(byte: int) -> str:
        char = chr(byte)
        if char in '"\\':
            return "\\" + char
        # Three octal digits can't swallow a digit that follows.
        return char if 0x20 <= byte < 0x7F else f"\\{byte:03o}"

    return '"' + "".join(escape(byte) for byte in text.encode()) + '"'


def comment_text(text: str) -> str:
    """Makes the text suitable for a // comment: one line, without a trailing backslash."""
    return re.sub(r"\s+", " ", text).rstrip("\\")


def substitute(template: str, values: dict[str, Any]) -> str:
    """Replaces ``@NAME@``; every name must be known and every value used."""
    unused = set(values)

    def replace(match: re.Match[str]) -> str:
        unused.discard(match[1])
        return str(values[match[1]])

    result = re.sub(r"@([A-Z_]+)@", replace, template)
    if unused:
        raise KeyError(f"not in the template: {sorted(unused)}")
    return result
