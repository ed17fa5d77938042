"""Parses Python text, in which torch writes guards, to sizes and conditions. It does not need
torch.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Mapping

from aoti_driver.contract.size_expr import (
    FUNCTIONS,
    LARGEST_EXPONENT,
    Name,
    Number,
    Operation,
    SizeExpr,
    Truth,
    UnsupportedError,
    operation,
    python_text,
)

_COMPARISONS: Mapping[type[ast.cmpop], str] = {
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
}
_ARITHMETIC: Mapping[type[ast.operator], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.Pow: "**",
}


def parse(text: str, named: Mapping[str, SizeExpr] | None = None) -> SizeExpr:
    """The expression that a text stands for; raises UnsupportedError for any other text.

    named: expressions for texts such as ``L['x'].size()[0]``.
    """
    named = named or {}
    try:
        return _Reader(named).read(ast.parse(text.strip(), mode="eval").body)
    except SyntaxError as e:
        raise UnsupportedError(text) from e
    except UnsupportedError as e:
        part = str(e)
        for name in sorted(named, key=len, reverse=True):
            part = part.replace(name, python_text(named[name]))
        raise UnsupportedError(part) from e


def normal(text: str) -> str:
    """The text in the form of the keys of ``named``."""
    return ast.unparse(ast.parse(text, mode="eval"))


class _Reader:
    def __init__(self, named: Mapping[str, SizeExpr]) -> None:
        self._named = named

    def read(self, node: ast.expr) -> SizeExpr:
        if isinstance(node, (ast.Subscript, ast.Call)):
            text = ast.unparse(node)
            if text in self._named:
                return self._named[text]
        match node:
            case ast.Name(id=name):
                return Name(name)
            case ast.Constant(value=bool(value)):
                return Truth(value)
            case ast.Constant(value=int() | float() as value) if math.isfinite(value):
                return Number(value)
            case ast.BoolOp(op=operator, values=parts):
                return self._operation("and" if isinstance(operator, ast.And) else "or", *parts)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return self._operation("not", operand)
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return self._operation("-", operand)
            case ast.Compare(left=left, ops=operators, comparators=others):
                return self._comparison(node, operators, [left, *others])
            case ast.BinOp(op=ast.Pow(), right=exponent) if not isinstance(
                exponent, ast.Constant
            ) or exponent.value not in range(LARGEST_EXPONENT + 1):
                pass
            case ast.BinOp(left=left, op=sign, right=right) if type(sign) in _ARITHMETIC:
                return self._operation(_ARITHMETIC[type(sign)], left, right)
            case ast.Call(func=ast.Name(id="max" | "min" as name), args=[_, _, *_] as arguments):
                if not node.keywords:
                    return self._operation(name, *arguments)
            case ast.Call(func=ast.Name(id="abs"), args=[argument], keywords=[]):
                inner = self.read(argument)
                return operation("max", inner, operation("-", inner))
            case ast.Call(func=ast.Name(id="float"), args=[argument], keywords=[]):
                return self._operation("float", argument)
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id="math"), attr=name),
                args=[argument],
                keywords=[],
            ) if name in FUNCTIONS and name != "float":
                return self._operation(name, argument)
        raise UnsupportedError(ast.unparse(node))

    def _operation(self, name: str, *operands: ast.expr) -> SizeExpr:
        return operation(name, *map(self.read, operands))

    def _comparison(
        self, node: ast.expr, operators: list[ast.cmpop], sides: list[ast.expr]
    ) -> SizeExpr:
        signs = [_COMPARISONS.get(type(operator), "") for operator in operators]
        if "" in signs:
            raise UnsupportedError(ast.unparse(node))
        operands = [self.read(side) for side in sides]
        if len(set(signs)) == 1:
            return operation(signs[0], *operands)
        pairs = zip(signs, operands, operands[1:])
        return Operation("and", tuple(operation(sign, a, b) for sign, a, b in pairs))
