"""The language of input specs and dims: tokenizer and recursive-descent parser.

    spec   := NAME ['[' [expr (',' expr)* [',']] ']'] ['in' number '..' number]
    dim    := number '..' number ['step' INTEGER] | expr
    expr   := term (('+' | '-') term)*
    term   := factor ('*' factor | '//' INTEGER)*
    factor := INTEGER | NAME | '(' expr ')' | '-' factor
    number := ['-'] (INTEGER | FLOAT)

Only specs have divisions.

Every node has its position in the text, so that an error can point at the character.
"""

from __future__ import annotations

import dataclasses
import re
from typing import NoReturn

from aoti_driver.base.errors import DriverError

_TOKEN = re.compile(
    r"\s*(?:(?P<float>\d+\.(?!\.)\d*(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+)|(?P<int>\d+)"
    r"|(?P<name>[^\W\d]\w*)|(?P<op>\.\.|//|\*\*|[\[\](),+\-*/%])|(?P<bad>\S))"
)

NUMBERS = ("float", "int")  # Python's numbers, which a spec without brackets names

_NOT_LINEAR = (
    "a size can only grow linearly with one dim: an integer times a dim, plus or minus an integer"
)
_OPERAND = "a number or a dim"
_DERIVED_QUOTIENT = (
    "division is not possible in dynamic_dims: declare the smaller dim and derive the larger from "
    'it, as in {"half": "1..256", "seq": "2*half"}; or write the division in place of the dim in '
    "inputs"
)
_REFUSED_OPERATORS = {
    "/": "a size must be an integer: // divides and rounds down, as in seq // 2",
    "%": f"remainders are not possible: {_NOT_LINEAR}",
    "**": f"powers are not possible: {_NOT_LINEAR}",
}


@dataclasses.dataclass(frozen=True)
class Text:
    """The text that is parsed, and where the user wrote it (for example ``//m:e: inputs["x"]``)."""

    where: str
    text: str

    def fail(self, message: str, start: int, end: int | None = None, hint: str = "") -> NoReturn:
        """Raises a DriverError that shows the text with the given characters underlined."""
        width = max(1, (start + 1 if end is None else end) - start)
        lines = [
            f"{self.where}: {message}",
            f"    {self.text}",
            "    " + " " * start + "^" + "~" * (width - 1),
        ]
        raise DriverError("\n".join(lines + ([f"  {hint}"] if hint else [])))


@dataclasses.dataclass(frozen=True)
class Token:
    kind: str  # "int", "float", "name", "op" or "end"
    text: str
    start: int

    @property
    def end(self) -> int:
        return self.start + len(self.text)

    def __str__(self) -> str:
        return "the end of the text" if self.kind == "end" else f'"{self.text}"'


@dataclasses.dataclass(frozen=True)
class Number:
    value: int | float
    start: int
    end: int


@dataclasses.dataclass(frozen=True)
class Name:
    name: str
    start: int
    end: int


@dataclasses.dataclass(frozen=True)
class Negation:
    operand: Node
    start: int
    end: int


@dataclasses.dataclass(frozen=True)
class Operation:
    operator: str  # "+", "-", "*" or "//"
    left: Node
    right: Node

    @property
    def start(self) -> int:
        return self.left.start

    @property
    def end(self) -> int:
        return self.right.end


Node = Number | Name | Negation | Operation


@dataclasses.dataclass(frozen=True)
class Range:
    """Both ends are included. step: the distance of neighbours, where it isn't 1."""

    low: Number
    high: Number
    step: Number | None = None

    @property
    def start(self) -> int:
        return self.low.start

    @property
    def end(self) -> int:
        return self.high.end if self.step is None else self.step.end


@dataclasses.dataclass(frozen=True)
class SpecSyntax:
    """The parts of an input spec, before their names are resolved.

    extents: None without brackets: a Python number.
    """

    dtype: Name
    extents: tuple[Node, ...] | None
    values: Range | None


class Parser:
    """Parses one text; use :func:`parse_spec` and :func:`parse_dim`."""

    def __init__(self, text: Text) -> None:
        self._text = text
        self._tokens = _tokenize(text)
        self._next = 0
        self._in_spec = False

    def spec(self) -> SpecSyntax:
        dtype = self._peek()
        self._in_spec = True
        if dtype.kind != "name":
            self._unexpected("a dtype", hint='a spec looks like "int64[batch, seq] in 0..30521"')
        self._advance()
        if dtype.text in NUMBERS and not self._at("["):
            return SpecSyntax(Name(dtype.text, dtype.start, dtype.end), None, self._values())
        if dtype.text == "bool" and not self._at("["):
            self._text.fail(
                "a Python bool chooses code, so it can't vary from call to call",
                dtype.start,
                dtype.end,
                'write the value that the program is made for, "True" or "False"; or "bool[]" for '
                "a tensor",
            )
        self._expect("[", f'"[" after the dtype (a scalar is "{dtype.text}[]")')
        extents: list[Node] = []
        while not self._accept("]"):
            extents.append(self._expression("a size, a dim or an expression"))
            if not self._accept(","):
                self._expect("]", '"," or "]"')
                break
        values = self._values()
        return SpecSyntax(Name(dtype.text, dtype.start, dtype.end), tuple(extents), values)

    def dim(self) -> Range | Node:
        if any(t.kind == "op" and t.text == ".." for t in self._tokens):
            values = self._range()
            step = None
            if self._peek().kind == "name" and self._peek().text == "step":
                self._advance()
                step = self._number()
            self._end('a step, as in "8..512 step 8", or the end of the text')
            return dataclasses.replace(values, step=step)
        node = self._expression('a range such as "1..64" or an expression such as "2*half"')
        self._end("an operator or the end of the text")
        return node

    def _values(self) -> Range | None:
        """``in low..high``, or nothing, and then the end of the text."""
        values = None
        if self._peek().kind == "name" and self._peek().text == "in":
            self._advance()
            values = self._range()
        self._end('"in low..high" or the end of the text')
        return values

    def _range(self) -> Range:
        low = self._number()
        self._expect("..", f'".." after {low.value}, as in "{low.value}..64"')
        return Range(low, self._number())

    def _number(self) -> Number:
        start = self._peek().start
        negative = self._accept("-")
        token = self._peek()
        if token.kind not in ("int", "float"):
            self._unexpected("a number")
        self._advance()
        value = int(token.text) if token.kind == "int" else float(token.text)
        return Number(-value if negative else value, start, token.end)

    def _expression(self, wanted: str) -> Node:
        node = self._term(wanted)
        while (token := self._peek()).text in ("+", "-") and token.kind == "op":
            self._advance()
            node = Operation(token.text, node, self._term(_OPERAND))
        return node

    def _term(self, wanted: str) -> Node:
        node = self._factor(wanted)
        while (token := self._peek()).kind == "op":
            if token.text in _REFUSED_OPERATORS:
                self._text.fail(_REFUSED_OPERATORS[token.text], token.start, token.end)
            if token.text not in ("*", "//"):
                break
            self._advance()
            right = self._divisor(token) if token.text == "//" else self._factor(_OPERAND)
            node = Operation(token.text, node, right)
        return node

    def _divisor(self, operator: Token) -> Node:
        if not self._in_spec:
            self._text.fail(_DERIVED_QUOTIENT, operator.start, operator.end)
        divisor = self._factor(_OPERAND)
        if not isinstance(divisor, Number) or divisor.value < 1:
            self._text.fail("a size is divided by a positive integer", divisor.start, divisor.end)
        return divisor

    def _factor(self, wanted: str) -> Node:
        token = self._peek()
        if token.kind == "int":
            self._advance()
            return Number(int(token.text), token.start, token.end)
        if token.kind == "float":
            self._text.fail("a size must be an integer", token.start, token.end)
        if token.kind == "name":
            self._advance()
            return Name(token.text, token.start, token.end)
        if self._accept("("):
            node = self._expression(_OPERAND)
            self._expect(")", '")"')
            return node
        if self._accept("-"):
            operand = self._factor("a number or a dim")
            return Negation(operand, token.start, operand.end)
        self._unexpected(wanted)

    def _peek(self) -> Token:
        return self._tokens[self._next]

    def _advance(self) -> None:
        self._next += 1

    def _at(self, operator: str) -> bool:
        return self._peek().kind == "op" and self._peek().text == operator

    def _accept(self, operator: str) -> bool:
        if self._at(operator):
            self._advance()
            return True
        return False

    def _expect(self, operator: str, wanted: str) -> None:
        if not self._accept(operator):
            self._unexpected(wanted)

    def _end(self, wanted: str) -> None:
        if self._peek().kind != "end":
            self._unexpected(wanted)

    def _unexpected(self, wanted: str, hint: str = "") -> NoReturn:
        token = self._peek()
        self._text.fail(f"expected {wanted}, got {token}", token.start, token.end, hint)


def parse_spec(text: Text) -> SpecSyntax:
    return Parser(text).spec()


def parse_dim(text: Text) -> Range | Node:
    return Parser(text).dim()


def _tokenize(text: Text) -> list[Token]:
    tokens = []
    position = 0
    stripped = text.text.rstrip()
    while position < len(stripped):
        match = _TOKEN.match(stripped, position)
        assert match is not None and match.lastgroup is not None  # "bad" takes what is left
        kind = match.lastgroup
        if kind == "bad":
            text.fail(f'unexpected character "{match[kind]}"', match.start(kind))
        tokens.append(Token(kind, match[kind], match.start(kind)))
        position = match.end()
    return [*tokens, Token("end", "", len(stripped))]
