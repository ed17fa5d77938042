"""Finds the headers that a header includes, by reading `#include` lines without a preprocessor."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable
from fnmatch import fnmatchcase
from pathlib import PurePosixPath
from posixpath import normpath

_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*[<"]([^>"\n]+)[>"]', re.MULTILINE)


def header_closure(
    headers: Collection[str], read: Callable[[str], str], patterns: Iterable[str]
) -> list[str]:
    """Returns the `headers` that match a pattern, and all headers that these include.

    Conditions (`#ifdef`) are ignored: the result may have too many headers, never too few.
    """
    there = set(headers)
    found = {name for pattern in patterns for name in headers if _matches(name, pattern)}
    todo = sorted(found)
    while todo:
        header = todo.pop()
        for name in _INCLUDE.findall(read(header)):
            beside = normpath(PurePosixPath(header).parent / name)
            for candidate in (name, beside):
                if candidate in there:
                    if candidate not in found:
                        found.add(candidate)
                        todo.append(candidate)
                    break
    return sorted(found)


def _matches(name: str, pattern: str) -> bool:
    """Like a shell: `*` stops at `/`."""
    return name.count("/") == pattern.count("/") and fnmatchcase(name, pattern)
