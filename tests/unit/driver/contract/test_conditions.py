"""Conditions on sizes: parsing, evaluation, sizes that meet them, and their C++."""

from __future__ import annotations

import itertools
import subprocess
from pathlib import Path

import pytest
from aoti_driver.base.errors import DriverError
from aoti_driver.bindings import cpp_sizes
from aoti_driver.contract import conditions
from aoti_driver.contract.program_parts import Dim
from aoti_driver.contract.size_expr import Operation, UnsupportedError
from aoti_driver.export import guard_proofs
from aoti_driver.export.python_sizes import parse
from aoti_driver.verify.points import points


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os').system('true')",
        "a.b == 1",
        "a[0] == 1",
        "lambda: 1",
        "a << 70 == 1",
        "a ** b == 1",
        "a in (1, 2)",
        "math.exp(a) > 1",
        "open('x') == 1",
    ],
)
def test_nothing_else_is_a_condition(text: str) -> None:
    with pytest.raises(UnsupportedError):
        parse(text)


def test_functions_of_torch_can_not_be_checked() -> None:
    guard = Operation("==", (Operation("PythonMod", (parse("a"), parse("2"))), parse("1")))
    with pytest.raises(DriverError) as caught:
        conditions.check_all([guard], ["a"], "//:m")
    assert str(caught.value) == (
        '//:m: guard "PythonMod(a, 2) == 1": "PythonMod(a, 2)" can\'t be checked'
    )


def test_dims_must_be_known() -> None:
    with pytest.raises(DriverError, match='//:m: guard "a == c": there is no dim "c"'):
        conditions.check_all([parse("a == c")], ["a"], "//:m")


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ({"n": 300, "a": 5, "b": 6, "t": 99}, {"n": 300, "a": 5, "b": 6, "t": 11}),
        ({"n": 310, "a": 5, "b": 6, "t": 11}, {"n": 300, "a": 5, "b": 6, "t": 11}),
        ({"n": 500, "a": 9, "b": 9, "t": 11}, {"n": 500, "a": 9, "b": 6, "t": 15}),
    ],
)
def test_sizes_that_satisfy_conditions(wanted: dict[str, int], found: dict[str, int]) -> None:
    rules = [parse(text) for text in ("n % 100 == 0", "t == a + b", "b <= 6")]
    ranges = {"n": (2, 1000), "a": (2, 9), "b": (2, 9), "t": (4, 18)}
    assert conditions.satisfied(rules, ranges, wanted) == found


def test_no_sizes_that_satisfy_conditions() -> None:
    assert conditions.satisfied([parse("n % 7 == 3")], {"n": (4, 9)}, {"n": 5}) is None


def test_tests_keep_to_the_conditions() -> None:
    rules = [parse("a % 8 == 0"), parse("b <= a")]
    ranges = {"a": (2, 1000), "b": (2, 1000)}
    chosen = points(ranges, {"a": 100, "b": 100}, 16, rules)
    assert len(chosen) > 8 and all(conditions.all_hold(rules, sizes) for sizes in chosen)
    assert {"a": 1000, "b": 1000} in chosen


LARGE = {"a": (1, 2**31 - 1), "b": (1, 2**31 - 1), "z": (0, 2**31 - 1), "c": (8, 2**31 - 1)}


@pytest.mark.parametrize(
    ("text", "truth"),
    [
        ("a + 1 != a", True),
        ("a * (b + 1) != b", True),
        ("a * b + b != b", True),
        ("z * b + b != b", None),
        ("2 * a + 1 != 2 * b", True),
        ("2 * a != 2 * b", None),
        ("a + b >= 2", True),
        ("a + b >= 3", None),
        ("a + b < 2", False),
        ("c // 4 > 1", True),
        ("(c // 4) * a > 1", True),
        ("c // 4 > 2", None),
        ("a == a", True),
        ("a == a + 1", False),
        ("a % 4 < 4", True),
        ("a % 4 == 0", None),
        ("not a == a", False),
        ("a > b or a <= b + a", True),
        ("a > b and a < 1", False),
        ("max(a, c) >= 8", True),
        ("a ** 2 >= a", True),
        ("a / 2 > 0", None),
    ],
)
def test_proofs(text: str, truth: bool | None) -> None:
    assert guard_proofs.proved(parse(text), LARGE) is (truth is True)
    assert guard_proofs.refuted(parse(text), LARGE) is (truth is False)
    small = {name: (low, low + 12) for name, (low, _) in LARGE.items()}
    if truth is not None:
        assert guard_proofs.proved(parse(text), small) is truth


@pytest.mark.parametrize("text", ["a // 2 == 3 and a % 2 == 1", "a / 2 == 3.5"])
def test_small_ranges_are_tried(text: str) -> None:
    assert guard_proofs.proved(parse(text), {"a": (7, 7)})
    assert not guard_proofs.proved(parse(text), {"a": (6, 7)})
    assert not guard_proofs.refuted(parse(text), {"a": (6, 7)})
    assert guard_proofs.refuted(parse(text), {"a": (8, 9000)})


EXPRESSIONS = [
    "a % 4 == 0",
    "a // b != -2",
    "a % b <= 1 or not b > 2",
    "a / b < 1.5",
    "math.trunc(a / 2) == a // 2",
    "math.ceil(a / 3) * 3 >= a",
    "math.floor(a * 0.5) != b",
    "max(a, b, 2) - min(a, b) < 4",
    "3 <= a <= 5",
    "a ** 3 - 2 * a * b > -7",
    "(a > 0) == (b > 0)",
    "True",
    "math.sqrt(a * a) == float(a)",
    "a * 4611686018427387904 * 4 != b",
]


def test_cpp_and_python_agree(tmp_path: Path) -> None:
    cpp = cpp_sizes.CppSizes([Dim("a", -6, 6), Dim("b", -6, 6)])
    functions = "".join(
        f"bool Guard{i}(const std::int64_t* dims) {{\n  bool defined = true;\n"
        f"  (void)dims;\n  const bool holds = {cpp.condition(parse(text))};\n"
        "  return defined && holds;\n}\n"
        for i, text in enumerate(EXPRESSIONS)
    )
    calls = "".join(f"      std::putchar('0' + Guard{i}(dims));\n" for i in range(len(EXPRESSIONS)))
    source = (
        f"{cpp_sizes.INCLUDES}#include <cstdint>\n#include <cstdio>\nnamespace {{\n"
        f"{cpp_sizes.HELPERS}\n{functions}}}\nint main() {{\n"
        "  for (std::int64_t a = -6; a <= 6; ++a) {\n"
        "    for (std::int64_t b = -6; b <= 6; ++b) {\n      const std::int64_t dims[] = {a, b};\n"
        f"{calls}    }}\n  }}\n}}\n"
    )
    (tmp_path / "guards.cc").write_text(source, encoding="utf-8")
    subprocess.run(
        ["c++", "-std=c++20", "-Wall", "-Wextra", "-Werror", "guards.cc", "-o", "guards"],
        cwd=tmp_path,
        check=True,
    )
    told = subprocess.run([tmp_path / "guards"], capture_output=True, text=True, check=True).stdout
    span = range(-6, 7)
    expected = [
        conditions.holds(parse(text), {"a": a, "b": b})
        for a, b in itertools.product(span, span)
        for text in EXPRESSIONS
    ]
    wrong = [
        (EXPRESSIONS[i % len(EXPRESSIONS)], i // len(EXPRESSIONS))
        for i, (got, want) in enumerate(zip(told, expected, strict=True))
        if got != str(int(want))
    ]
    assert not wrong
