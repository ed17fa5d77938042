"""Describes a program's constants by static tables of numbers and text.

Inductor writes eleven statements for each, which for a language model are most of the code, and of
the time that it takes to compile. The tables have no addresses, so that a library needs no
relocations for them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

_FIELDS = (
    r'name = "(?P<name>[^"\\]*)"',
    r"dtype = (?P<dtype>\w+)",
    r"device_type = cached_torch_device_type_cpu",
    r"offset = (?P<offset>\d+)",
    r"data_size = (?P<bytes>\d+)",
    r"from_folded = false",
    r"type = static_cast<int32_t>\(torch::aot_inductor::ConstantType::(?P<type>\w+)\)",
    r"shape = \{(?P<shape>[\d, ]*)\}",
    r"stride = \{(?P<stride>[\d, ]*)\}",
    r"layout = static_cast<int32_t>\(cached_torch_layout_strided\)",
    r'original_fqn = "(?P<fqn>[^"\\]*)"',
)
_I = r"constants_info_\[(?P<i>\d+)\]"
_CONSTANT = re.compile(f"    {_I}." + ";\n    constants_info_\\[(?P=i)\\].".join(_FIELDS) + ";\n")

_ROW = "{{{i}, {name}, {fqn}, {sizes}, {dims}, {dtype}, {type}, {offset}, {bytes}}},"
_TABLES = """\
    struct Row {{
      uint32_t i, name, fqn, sizes;
      uint16_t dims, dtype, type;
      int64_t offset;
      size_t bytes;
    }};
    // What the rows point into: the texts, and the shapes with their strides.
    static constexpr char kText[] =
        {text};
    static constexpr int64_t kSizes[] = {{{sizes}}};
    static constexpr ConstantType kTypes[] = {{{types}}};
    const int32_t dtypes[] = {{{dtypes}}};
    static constexpr Row kRows[] = {{
        {rows}
    }};
    for (const Row& row : kRows) {{
      auto& info = constants_info_[row.i];
      const int64_t* sizes = kSizes + row.sizes;
      info.name = kText + row.name;
      info.dtype = dtypes[row.dtype];
      info.device_type = cached_torch_device_type_cpu;
      info.offset = row.offset;
      info.data_size = row.bytes;
      info.type = static_cast<int32_t>(kTypes[row.type]);
      info.shape.assign(sizes, sizes + row.dims);
      info.stride.assign(sizes + row.dims, sizes + 2 * row.dims);
      info.layout = static_cast<int32_t>(cached_torch_layout_strided);
      info.original_fqn = kText + row.fqn;
    }}
"""


def shorten(wrapper: str) -> str:
    """The wrapper with these tables. A constant that Inductor describes otherwise stays."""
    found = [*_CONSTANT.finditer(wrapper)]
    if not found:
        return wrapper
    place = found[0].start()
    return f"{wrapper[:place]}{_tables(found)}{_CONSTANT.sub('', wrapper[place:])}"


def _tables(found: Sequence[re.Match[str]]) -> str:
    text = _Places()
    sizes = _Places()
    dtypes: dict[str, int] = {}
    types: dict[str, int] = {}
    rows = []
    for match in found:
        shape, stride = (_numbers(match[name]) for name in ("shape", "stride"))
        row = _ROW.format(
            i=match["i"],
            name=text.place(match["name"], _size(match["name"])),
            fqn=text.place(match["fqn"], _size(match["fqn"])),
            sizes=sizes.place(", ".join([*shape, *stride]), 2 * len(shape)),
            dims=len(shape),
            dtype=dtypes.setdefault(match["dtype"], len(dtypes)),
            type=types.setdefault(match["type"], len(types)),
            offset=match["offset"],
            bytes=match["bytes"],
        )
        rows.append(row)
    return _TABLES.format(
        text="\n        ".join(f'"{one}\\0"' for one in text.found),
        # C++ has no empty arrays.
        sizes=", ".join([*filter(None, sizes.found), "0"]),
        dtypes=", ".join(dtypes),
        types=", ".join(f"ConstantType::{one}" for one in types),
        rows="\n        ".join(rows),
    )


class _Places:
    """Where each of different texts begins in the table that has them one after the other."""

    def __init__(self) -> None:
        self.found: dict[str, int] = {}
        self._end = 0

    def place(self, text: str, length: int) -> int:
        if text not in self.found:
            self.found[text] = self._end
            self._end += length
        return self.found[text]


def _size(text: str) -> int:
    return len(text.encode()) + 1


def _numbers(text: str) -> list[str]:
    return [number for number in text.split(", ") if number]
