"""Describes a program's constants in one line each.

Inductor writes eleven statements for each, which for a language model are most of the code, and of
the time that it takes to compile.
"""

from __future__ import annotations

import re

_FIELDS = (
    r'name = "(?P<name>[^"]*)"',
    r"dtype = (?P<dtype>\w+)",
    r"device_type = cached_torch_device_type_cpu",
    r"offset = (?P<offset>\d+)",
    r"data_size = (?P<bytes>\d+)",
    r"from_folded = false",
    r"type = static_cast<int32_t>\(torch::aot_inductor::ConstantType::(?P<type>\w+)\)",
    r"shape = \{(?P<shape>[\d, ]*)\}",
    r"stride = \{(?P<stride>[\d, ]*)\}",
    r"layout = static_cast<int32_t>\(cached_torch_layout_strided\)",
    r'original_fqn = "(?P<fqn>[^"]*)"',
)
_I = r"constants_info_\[(?P<i>\d+)\]"
_CONSTANT = re.compile(f"    {_I}." + ";\n    constants_info_\\[(?P=i)\\].".join(_FIELDS) + ";\n")

_FUNCTION = """\
    const auto constant = [this](
        size_t i, const char* name, const char* fqn, int32_t dtype, int64_t offset, size_t bytes,
        ConstantType type, std::initializer_list<int64_t> shape,
        std::initializer_list<int64_t> stride) {
      auto& info = constants_info_[i];
      info.name = name;
      info.dtype = dtype;
      info.device_type = cached_torch_device_type_cpu;
      info.offset = offset;
      info.data_size = bytes;
      info.type = static_cast<int32_t>(type);
      info.shape = shape;
      info.stride = stride;
      info.layout = static_cast<int32_t>(cached_torch_layout_strided);
      info.original_fqn = fqn;
    };
"""


def shorten(wrapper: str) -> str:
    """The wrapper with these lines. A constant that Inductor describes otherwise stays."""
    found = _CONSTANT.search(wrapper)
    if found is None:
        return wrapper
    before, rest = wrapper[: found.start()], wrapper[found.start() :]
    return f"{before}{_FUNCTION}{_CONSTANT.sub(_row, rest)}"


def _row(match: re.Match[str]) -> str:
    return (
        f'    constant({match["i"]}, "{match["name"]}", "{match["fqn"]}", {match["dtype"]}, '
        f"{match['offset']}, {match['bytes']}, ConstantType::{match['type']}, "
        f"{{{match['shape']}}}, {{{match['stride']}}});\n"
    )
