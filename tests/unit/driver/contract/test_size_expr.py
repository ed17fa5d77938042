"""Sizes and conditions: their JSON, their text, their values and their C++ say the same."""

from __future__ import annotations

import ast
import json
import math
import subprocess
from pathlib import Path
from random import Random
from typing import Any

import pytest
from aoti_driver.base.errors import DriverError
from aoti_driver.bindings import cpp_sizes
from aoti_driver.contract import conditions, polynomials
from aoti_driver.contract.polynomials import Affine
from aoti_driver.contract.program_parts import Dim
from aoti_driver.contract.size_expr import (
    COMPARISONS,
    Name,
    Number,
    Operation,
    SizeExpr,
    Truth,
    UnsupportedError,
    affine,
    operation,
    python_text,
)
from aoti_driver.contract.size_json import from_json, to_json
from aoti_driver.export.python_sizes import parse
from hypothesis import given
from hypothesis import strategies as st

DIMS = {"a": 3, "b": -2}


def _chains(inner: st.SearchStrategy[SizeExpr], *names: str) -> st.SearchStrategy[SizeExpr]:
    operands = st.lists(inner, min_size=2, max_size=4).map(tuple)
    return st.builds(Operation, st.sampled_from(names), operands)


def _compound(inner: st.SearchStrategy[SizeExpr]) -> st.SearchStrategy[SizeExpr]:
    pairs = st.tuples(inner, inner)
    small = st.integers(0, 3).map(Number)
    functions = st.sampled_from(["float", "trunc", "floor", "ceil", "sqrt"])
    return st.one_of(
        st.builds(Operation, st.sampled_from(["+", "-", "*", "/", "//", "%"]), pairs),
        st.builds(lambda a: operation("-", a), inner),
        st.builds(lambda a, n: operation("**", a, n), inner, small),
        st.builds(lambda name, a: operation(name, a), functions, inner),
        _chains(inner, "max", "min"),
    )


LEAVES = st.one_of(
    st.integers(-9, 9).map(Number),
    st.sampled_from([0.5, 2.5, 3.0]).map(Number),
    st.sampled_from(["a", "b"]).map(Name),
)
SIZES: st.SearchStrategy[SizeExpr] = st.recursive(LEAVES, _compound, max_leaves=8)
CONDITIONS: st.SearchStrategy[SizeExpr] = st.recursive(
    st.one_of(_chains(SIZES, "==", "!=", "<", "<=", ">", ">="), st.booleans().map(Truth)),
    lambda inner: st.one_of(
        _chains(inner, "and", "or"), st.builds(lambda a: operation("not", a), inner)
    ),
    max_leaves=4,
)


def value(expression: SizeExpr) -> Any:
    try:
        return expression.evaluate(DIMS)
    except (ArithmeticError, ValueError, TypeError) as e:  # sqrt(-1) ** 2 is no number, and so on
        return type(e)


@given(SIZES | CONDITIONS)
def test_python_prints_the_same_and_computes_the_same(expression: SizeExpr) -> None:
    text = python_text(expression)
    assert ast.unparse(ast.parse(text, mode="eval")) == text
    assert parse(text) == expression
    scope: dict[str, Any] = {"max": max, "min": min, "float": float, "math": math, **DIMS}
    try:
        expected = eval(text, {"__builtins__": {}}, scope)
    except (ArithmeticError, ValueError, TypeError) as e:
        expected = type(e)
    assert value(expression) == expected or expected != expected


@given(SIZES | CONDITIONS)
def test_json_keeps_all(expression: SizeExpr) -> None:
    assert from_json(json.loads(json.dumps(to_json(expression)))) == expression


@given(SIZES | CONDITIONS)
def test_dims_are_in_the_order_of_the_text(expression: SizeExpr) -> None:
    text = python_text(expression)
    named = [n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Name) and n.id in DIMS]
    named.sort(key=lambda n: n.col_offset)
    assert expression.dims == tuple(dict.fromkeys(n.id for n in named))


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (3, "3"),
        ("seq", "seq"),
        (["+", ["*", 2, "half"], 1], "2*half + 1"),
        (["-", "half", 1], "half - 1"),
        (["+", "a", "b", "c"], "a + b + c"),
        (["+", "a", ["+", "b", "c"]], "a + (b + c)"),
        (["*", ["-", "a"], ["**", "b", 2]], "-a*b**2"),
        (["max", 1, ["//", "n", 2]], "Max(1, (n//2))"),
        (["+", ["//", "n", 2], 1], "(n//2) + 1"),
        (["%", ["-", "n", 1], 4], "Mod(n - 1, 4)"),
        (["ceil", ["*", 0.5, "n"]], "CeilToInt(0.5*n)"),
        (["PythonMod", "n", 4], "PythonMod(n, 4)"),
        ("?", "?"),
        (["==", ["%", "n", 100], 0], "n % 100 == 0"),
        (["<=", 2, ["*", 2, "n"], 8], "2 <= 2 * n <= 8"),
        (["or", ["not", [">", "a", "b"]], True], "not a > b or True"),
    ],
)
def test_the_manifests_form_and_the_peoples(data: Any, text: str) -> None:
    assert str(from_json(data)) == text
    assert to_json(from_json(data)) == data


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (None, "expected a size, such as 3, .* got None"),
        ("2*half", "got '2\\*half'"),
        (["+"], "got \\['\\+'\\]"),
        (["+", 1], '"\\+" can\'t have the operands 1'),
        (["<<", "a", 2], "got \\['<<', 'a', 2\\]"),
        (["**", "a", "b"], '"\\*\\*" can\'t have the operands a, b'),
        (["**", "a", 17], '"\\*\\*" can\'t have the operands a, 17'),
        (["sqrt", "a", "b"], '"sqrt" can\'t have'),
        (["==", "a"], '"==" can\'t have'),
        (["//", "a", "b", "c"], '"//" can\'t have'),
        (float("inf"), "got inf"),
        ({"dim": "a"}, "got {'dim': 'a'}"),
    ],
)
def test_what_is_no_size(data: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        from_json(data)


@pytest.mark.parametrize("data", ["?", ["PythonMod", "n", 4], ["+", 1, "?"]])
def test_what_has_no_value(data: Any) -> None:
    with pytest.raises(UnsupportedError):
        from_json(data).evaluate({"n": 3})
    with pytest.raises(UnsupportedError):
        conditions.check(from_json(["==", data, 1]))


@given(st.integers(-9, 9), st.sampled_from(["a", "b", None]), st.integers(-9, 9))
def test_affine_view(scale: int, dim: str | None, offset: int) -> None:
    size = affine(scale, dim, offset)
    linear = dim is not None and scale != 0
    assert polynomials.affine(size) == (Affine(scale, dim, offset) if linear else (0, None, offset))
    assert size.evaluate(DIMS) == scale * DIMS.get(str(dim), 0) + offset


@given(
    st.recursive(
        st.integers(-5, 5).map(Number) | st.sampled_from(["a", "b"]).map(Name),
        lambda inner: (
            st.builds(Operation, st.sampled_from("+-*"), st.tuples(inner, inner))
            | st.builds(lambda a, n: operation("**", a, Number(n)), inner, st.integers(0, 3))
        ),
        max_leaves=8,
    )
)
def test_normal_form_has_the_values_of_the_size(size: SizeExpr) -> None:
    terms = polynomials.polynomial(size)
    found = sum(factor * math.prod(DIMS[name] for name in term) for term, factor in terms.items())
    assert found == size.evaluate(DIMS)


@pytest.mark.parametrize("data", [["*", "a", "b"], ["+", "a", "b"], ["**", "a", 2]])
def test_what_is_not_affine(data: Any) -> None:
    with pytest.raises(DriverError, match="is not an integer times one dim plus an integer"):
        polynomials.affine(from_json(data))


@pytest.mark.parametrize("data", [["//", 2, "a"], ["max", 2, "a"], 0.5, "?", ["==", "a", 1]])
def test_what_is_no_polynomial(data: Any) -> None:
    with pytest.raises(DriverError, match=r"can't use .* expected integers and dims with"):
        polynomials.polynomial(from_json(data))


def drawn(random: Random, depth: int) -> SizeExpr:
    """A size in integers."""
    if depth == 0:
        leaf: list[SizeExpr] = [Name("a"), Name("b"), Number(random.randint(-9, 9))]
        return random.choice(leaf)
    name = random.choice(["+", "-", "*", "//", "%", "max", "min", "**", "neg"])
    left, right = drawn(random, depth - 1), drawn(random, depth - 1)
    if name == "neg":
        return operation("-", left)
    return operation(name, left, Number(random.randint(0, 3)) if name == "**" else right)


def drawn_condition(random: Random) -> SizeExpr:
    sides = [drawn(random, random.randint(1, 3)) for _ in range(4)]
    signs = random.choices(list(COMPARISONS), k=2)
    first, second = (operation(s, *pair) for s, pair in zip(signs, (sides[:2], sides[2:])))
    return operation(random.choice(["and", "or"]), first, operation("not", second))


def test_cpp_computes_the_same(tmp_path: Path) -> None:
    random = Random(0)
    guards = [drawn_condition(random) for _ in range(80)]
    cpp = cpp_sizes.CppSizes([Dim("a", -9, 9), Dim("b", -9, 9)])
    functions = "".join(
        f"bool Guard{i}(const std::int64_t* dims) {{\n  bool defined = true;\n  (void)dims;\n"
        f"  const bool holds = {cpp.condition(guard)};\n  return defined && holds;\n}}\n"
        for i, guard in enumerate(guards)
    )
    calls = "".join(f"    std::putchar('0' + Guard{i}(dims));\n" for i in range(len(guards)))
    source = (
        f"{cpp_sizes.INCLUDES}#include <cstdint>\n#include <cstdio>\nnamespace {{\n"
        f"{cpp_sizes.HELPERS}\n{functions}}}\nint main() {{\n  for (int i = 0; i < 49; ++i) {{\n"
        f"    const std::int64_t dims[] = {{i / 7 - 3, i % 7 - 3}};\n{calls}  }}\n}}\n"
    )
    (tmp_path / "guards.cc").write_text(source, encoding="utf-8")
    command = ["c++", "-std=c++20", "-Wall", "-Wextra", "-Werror", "guards.cc", "-o", "guards"]
    subprocess.run(command, cwd=tmp_path, check=True)
    told = subprocess.run([tmp_path / "guards"], capture_output=True, text=True, check=True).stdout
    sizes = [{"a": i // 7 - 3, "b": i % 7 - 3} for i in range(49)]
    expected = [conditions.holds(guard, dims) for dims in sizes for guard in guards]
    assert {True, False} <= set(expected)
    wrong = [
        (str(guards[i % len(guards)]), sizes[i // len(guards)])
        for i, (got, want) in enumerate(zip(told, expected, strict=True))
        if got != str(int(want))
    ]
    assert not wrong
