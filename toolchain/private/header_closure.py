"""Which headers does a header need? Found by reading `#include` lines, without a preprocessor."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path, PurePosixPath
from posixpath import normpath

_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*[<"]([^>"\n]+)[>"]', re.MULTILINE)


def header_closure(root: Path, patterns: Iterable[str]) -> list[str]:
    """Returns the headers under `root` that match a pattern, and all there that these include.

    Conditions (`#ifdef`) are not looked at: a header too many may be found, never one too few.
    """
    found = {str(path.relative_to(root)) for pattern in patterns for path in root.glob(pattern)}
    todo = sorted(found)
    while todo:
        header = todo.pop()
        text = (root / header).read_text(encoding="utf-8", errors="replace")
        for name in _INCLUDE.findall(text):
            beside = normpath(PurePosixPath(header).parent / name)
            for candidate in (name, beside):
                if not candidate.startswith("../") and (root / candidate).is_file():
                    if candidate not in found:
                        found.add(candidate)
                        todo.append(candidate)
                    break
    return sorted(found)
