"""Writes unicode_table.h: which code points are letters, numbers and white space.

    python3 examples/cc_chat/make_unicode_table.py > examples/cc_chat/unicode_table.h

The classes are those of the pre-tokenizer's regular expression: \\p{L}, \\p{N} and \\s. Python's
own tables give the first two. \\s is Unicode's property White_Space, which Python doesn't tell (its
str.isspace() takes the separators U+001C..U+001F, too); it has not changed since Unicode 6.3.
"""

from __future__ import annotations

import sys
import unicodedata

WHITE_SPACE = [
    *range(0x09, 0x0E), 0x20, 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B),
    0x2028, 0x2029, 0x202F, 0x205F, 0x3000,
]  # fmt: skip


def in_category(major: str) -> list[int]:
    """The code points whose general category starts with the letter, in order."""
    return [c for c in range(sys.maxunicode + 1) if unicodedata.category(chr(c))[0] == major]


def ranges(points: list[int]) -> list[tuple[int, int]]:
    """The same code points as closed ranges."""
    found: list[tuple[int, int]] = []
    for point in points:
        if found and found[-1][1] == point - 1:
            found[-1] = (found[-1][0], point)
        else:
            found.append((point, point))
    return found


def table(name: str, points: list[int]) -> str:
    """A C++ array of ranges, as clang-format leaves it."""
    lines = [f"inline constexpr CodePointRange {name}[] = {{"]
    line = "   "
    for first, last in ranges(points):
        item = f" {{{first:#x}, {last:#x}}},"
        if len(line) + len(item) > 100:
            lines.append(line)
            line = "   "
        line += item
    return "\n".join([*lines, line, "};"])


def main() -> None:
    """Prints the header."""
    tables = [
        table("kLetters", in_category("L")),
        table("kNumbers", in_category("N")),
        table("kWhiteSpace", WHITE_SPACE),
    ]
    print(
        f"// Unicode {unicodedata.unidata_version}. Made by make_unicode_table.py; don't edit.\n"
        "#pragma once\n\nnamespace chat {\n\n"
        "// A closed range. The ranges of a table are sorted and don't touch.\n"
        "struct CodePointRange {\n  char32_t first, last;\n};\n\n"
        "// clang-format off\n"
        + "\n\n".join(tables)
        + "\n// clang-format on\n\n}  // namespace chat"
    )


if __name__ == "__main__":
    main()
