"""Checks and adapts names for C++ and Python."""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterable

from aoti_driver.base.errors import DriverError

_CPP_KEYWORD_TEXT = """
    alignas alignof and and_eq asm auto bitand bitor bool break case catch char char16_t char32_t
    char8_t class co_await co_return co_yield compl concept const const_cast consteval constexpr
    constinit continue decltype default delete do double dynamic_cast else enum explicit export
    extern false float for friend goto if inline int long mutable namespace new noexcept not not_eq
    nullptr operator or or_eq private protected public register reinterpret_cast requires return
    short signed sizeof static static_assert static_cast struct switch template this thread_local
    throw true try typedef typeid typename union unsigned using virtual void volatile wchar_t while
    xor xor_eq
    """
_CPP_KEYWORDS = frozenset(_CPP_KEYWORD_TEXT.split())
# Macros of the C and C++ headers that the generated code includes.
_CPP_MACROS = frozenset(["EOF", "INFINITY", "NAN", "NULL", "assert", "errno", "linux", "unix"])

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


def check_identifier(name: str, what: str) -> str:
    """``name``, if it is an identifier in C++ and Python (or a keyword); ``what`` is for the
    message.
    """
    if not _IDENTIFIER.match(name):
        raise DriverError(
            f'{what} "{name}" can\'t be a name in C++ and Python: use letters, digits and "_", '
            "and no digit first"
        )
    return name


def check_cpp_type(name: str, what: str) -> str:
    """A name that must be used as it is: keywords are refused."""
    if cpp_name(check_identifier(name, what)) != name:
        raise DriverError(f'{what} "{name}" is reserved in C++; choose another one')
    return name


def cpp_name(name: str) -> str:
    """The name as a C++ member: keywords and reserved names get a ``_`` appended or prepended."""
    if name in _CPP_KEYWORDS or name in _CPP_MACROS:
        return name + "_"
    # Reserved in C++: a leading underscore before a capital, and two underscores anywhere.
    if re.match(r"_[A-Z]", name) or "__" in name:
        return "x" + re.sub(r"__+", "_", "_" + name)
    return name


def python_name(name: str) -> str:
    """The name as a Python argument."""
    return name + "_" if keyword.iskeyword(name) else name


def python_field(name: str) -> str:
    """The name as a field of a namedtuple, which takes no leading underscore."""
    return python_name(name.lstrip("_") or "output" if name.startswith("_") else name)


def check_unique(names: Iterable[tuple[str, str]], what: str) -> None:
    """Checks that two originals in ``names``, pairs (original, generated), do not become one
    name.
    """
    seen: dict[str, str] = {}
    for original, generated in names:
        if generated in seen:
            raise DriverError(
                f'{what} "{seen[generated]}" and "{original}" both become "{generated}" in the '
                "generated code; rename one of them"
            )
        seen[generated] = original
