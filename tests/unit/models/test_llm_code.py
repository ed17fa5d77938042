"""The LLM's generated C++ neither copies the cache nor the filled part of it."""

from __future__ import annotations

import os
import re
from pathlib import Path

ONE_HEAD = 2048 * 64  # elements of the cache that hold one head's keys

FILES = [Path(f) for f in os.environ["LLM_CPP"].split()]


def source(suffix: str) -> str:
    (path,) = (f for f in FILES if f.name.endswith(suffix))
    if path.is_dir():
        return "".join(file.read_text() for file in sorted(path.iterdir()))
    return path.read_text()


def test_no_loop_runs_over_a_head_of_the_cache() -> None:
    loop = re.compile(r"<static_cast<int64_t>\((\d+)L\)")
    bounds = sorted({int(n) for n in loop.findall(source(".kernels.cpp"))})
    assert 576 in bounds, "loops over an activation"
    assert bounds[-1] < ONE_HEAD, bounds


def test_no_buffer_holds_keys_or_values_of_the_whole_sequence() -> None:
    # The function of the blocks, and the program that calls it.
    functions = source("program.cpp").partition("::run_impl(")[::2]
    # The dims that come from attention_mask, the program's second input.
    size = r"auto (\w+)_size = \1\.sizes\(\);\s*int64_t (\w+) = \1_size\[1\];"
    mask = re.findall(size, functions[1])
    assert len(mask) == 2, mask
    total = mask[1][1]
    by_total = set()
    for text in functions:
        arrays = dict(
            re.findall(r"(?:const|constexpr) int64_t (int_array_\d+)\[\] = \{([^}]*)\};", text)
        )
        allocated = re.findall(r"aoti_torch_empty_strided\(\d+, (int_array_\d+),", text)
        assert len(allocated) > 4
        for name in allocated:
            sizes = [s.strip() for s in arrays[name].split(",") if s.strip()]
            constant = 1
            for size in sizes:
                constant *= int(size[:-1]) if re.fullmatch(r"\d+L", size) else 1
            assert constant < ONE_HEAD, f"a buffer of {sizes}"
            if any(re.search(rf"\b{total}\b", size) for size in sizes):
                by_total.add(tuple(sizes))
    assert by_total, "the attention mask is a buffer with total columns"
    assert all(sizes[-1] == total for sizes in by_total), by_total


def test_attention_reads_the_cache_itself() -> None:
    text = source("program.cpp")
    attention = r"aoti_torch_cpu__scaled_dot_product_flash_attention_for_cpu\((.*)\);"
    (call,) = re.findall(attention, text)
    views = re.findall(r"reinterpret_tensor_wrapper\((\w+), 4,", call)
    assert views[1] == views[2], call
    (place,) = re.findall(rf"ConstantHandle {views[1]}\(input_handles\[(\d+)\]\);", text)
    # All blocks are calls of one function, and the cache is this argument of each: a row has the
    # number of the function, then where each argument is.
    (table,) = re.findall(r"_table\[\] = \{\n(.*?)\n    \};", text, re.DOTALL)
    rows = [row.strip().split(", ") for row in table.splitlines()]
    assert [row[0] for row in rows] == ["0"] * 30
    (number,) = {row[1 + int(place)] for row in rows}
    # A row has the constant's number, and where its name begins in the table of texts.
    (place,) = re.findall(rf"        \{{{number}, (\d+), ", text)
    table = text.partition("kText[] =\n")[2].partition(";")[0]
    names = re.findall(r'"(.*)\\0"', table)
    assert "\0".join(names)[int(place) :].startswith("c_past_key_values\0")
