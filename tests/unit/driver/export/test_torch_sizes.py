"""torch's symbols as sizes: they print as sympy prints them, but for parentheses around divisions,
and have the same values.
"""

from __future__ import annotations

import ast
import math
from typing import Any

import pytest
import sympy
from aoti_driver.contract.size_expr import SizeExpr, Unknown, python_text
from aoti_driver.contract.size_json import to_json
from aoti_driver.export.torch_sizes import condition_from_sympy, from_sympy, symbol, to_sympy
from hypothesis import given
from hypothesis import strategies as st
from torch.utils._sympy.functions import CeilToInt, FloorDiv, Max, Min, Mod, PythonMod

BATCH, HALF = (sympy.Symbol(name, integer=True, positive=True) for name in ("batch", "half"))
_Max: Any = Max
_Min: Any = Min


def _compound(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    divisors = st.integers(2, 9).map(sympy.Integer)
    return st.one_of(
        st.builds(lambda a, b: a + b, inner, inner),
        st.builds(lambda a, b: a - b, inner, inner),
        st.builds(lambda a, b: a * b, inner, inner),
        st.builds(lambda a: a**2, inner),
        st.builds(FloorDiv, inner, divisors),
        st.builds(lambda a, b: Mod(_Max(a, 0), b), inner, divisors),  # takes none below 0
        st.builds(_Max, inner, inner),
        st.builds(_Min, inner, inner),
        st.builds(sympy.Max, inner, inner),  # as in a program that was loaded
        st.builds(lambda a: CeilToInt(a * sympy.Float(0.5)), inner),
    )


EXPRESSIONS: st.SearchStrategy[Any] = st.recursive(
    st.integers(-3, 9).map(sympy.Integer) | st.sampled_from([BATCH, HALF]),
    _compound,
    max_leaves=7,
)


@given(EXPRESSIONS)
def test_text_and_values_are_sympys(expression: Any) -> None:
    for given_ in (expression, sympy.expand(expression)):
        size = from_sympy(given_)
        assert ast.unparse(ast.parse(str(size))) == ast.unparse(ast.parse(str(given_)))
        expected = given_.subs({BATCH: 5, HALF: 3})
        if expected.is_Integer:
            assert size.evaluate({"batch": 5, "half": 3}) == int(expected)


def test_rational_coefficients() -> None:
    size = from_sympy(sympy.Rational(-3, 2) * BATCH * HALF + sympy.Rational(1, 2))
    assert str(size) == "-3*batch*half/2 + 1/2"
    assert math.isclose(size.evaluate({"batch": 2, "half": 3}), -8.5)


def test_functions_that_only_torch_knows() -> None:
    size = from_sympy(PythonMod(BATCH - HALF, 4) + 1)
    assert str(size) == str(PythonMod(BATCH - HALF, 4) + 1)
    assert to_json(size) == ["+", ["PythonMod", ["-", "batch", "half"], 4], 1]
    assert from_sympy(sympy.Piecewise((BATCH, BATCH > 2), (HALF, True))) == Unknown()


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        (8 * symbol("past") + 8, "8 + 8 * past"),
        (_Min(symbol("n"), 8), "min(8, n)"),
        (FloorDiv(symbol("n") + 1, 2), "(1 + n) // 2"),
        (symbol("n") ** 2, "n * n"),
    ],
)
def test_conditions_are_in_the_order_of_guards(expression: Any, text: str) -> None:
    assert python_text(condition_from_sympy(expression)) == text


@given(EXPRESSIONS)
def test_there_and_back(expression: Any) -> None:
    if not expression.has(CeilToInt):
        size: SizeExpr = from_sympy(expression)
        plain = expression.subs({BATCH: symbol("batch"), HALF: symbol("half")})
        values = {symbol("batch"): 7, symbol("half"): 4}
        assert to_sympy(size).subs(values) == plain.subs(values)
