"""Input specs and dims: what is accepted, and the exact error for what is not."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from aoti_driver.base.errors import DriverError
from aoti_driver.contract.dims import parse_dims, sample_sizes
from aoti_driver.contract.size_expr import Name, Number, SizeExpr, affine
from aoti_driver.contract.specs import TensorSpec, parse_specs, split_literals, with_numbers


def specs(spec: str, dims: Mapping[str, str] | None = None) -> TensorSpec:
    return parse_specs({"x": spec}, parse_dims(dims or {}, "//m:e"), "//m:e")["x"]


def error(spec: str, dims: Mapping[str, str] | None = None) -> str:
    with pytest.raises(DriverError) as caught:
        specs(spec, dims)
    return str(caught.value)


def static(n: int) -> SizeExpr:
    return Number(n)


B = {"b": "1..64"}


@pytest.mark.parametrize(
    ("spec", "dims", "expected"),
    [
        ("float32[]", {}, TensorSpec("float32", ())),
        ("bool[3]", {}, TensorSpec("bool", (static(3),))),
        ("int64[b, 4] in 0..9", B, TensorSpec("int64", (Name("b"), static(4)), (0, 9))),
        ("float32[b,] in -1.0..1e3", B, TensorSpec("float32", (Name("b"),), (-1.0, 1e3))),
        ("  int8 [ b ]in -128..127 ", B, TensorSpec("int8", (Name("b"),), (-128, 127))),
        ("float32[2*b + 1]", B, TensorSpec("float32", (affine(2, "b", 1),))),
        ("float32[b - 1]", B, TensorSpec("float32", (affine(1, "b", -1),))),
        ("float32[3 * (b + 2) - b]", B, TensorSpec("float32", (affine(2, "b", 6),))),
        ("float32[b + b]", B, TensorSpec("float32", (affine(2, "b", 0),))),
        ("float32[-3 + b]", {"b": "4..9"}, TensorSpec("float32", (affine(1, "b", -3),))),
        ("float32[2*3, b]", B, TensorSpec("float32", (static(6), Name("b")))),
        ("float32[s]", {"h": "1..8", "s": "2*h"}, TensorSpec("float32", (affine(2, "h", 0),))),
        ("float32[t + 1]", {"t": "2*s", "s": "h + 1", "h": "1..8"},
         TensorSpec("float32", (affine(2, "h", 3),))),
        ("float32[a, c]", {"a": "1..8", "c": "a"},
         TensorSpec("float32", (Name("a"), Name("a")))),
        # A range with one value is a static size.
        ("float32[one, b]", {**B, "one": "1..1"},
         TensorSpec("float32", (static(1), Name("b")))),
        ("float", {}, TensorSpec("float64", (), number="float")),
        ("float in 0.1..2", {}, TensorSpec("float64", (), (0.1, 2), "float")),
        (" int in 1..50", {}, TensorSpec("int64", (), (1, 50), "int")),
        ("int in -3..3", {}, TensorSpec("int64", (), (-3, 3), "int")),
        # Names that mean something to sympy are names.
        ("float32[N, S + 1]", {"N": "1..4", "S": "1..4"},
         TensorSpec("float32", (Name("N"), affine(1, "S", 1)))),
    ],
)  # fmt: skip
def test_accepts(spec: str, dims: dict[str, str], expected: TensorSpec) -> None:
    assert specs(spec, dims) == expected


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (
            "int46[b]",
            'unknown dtype "int46" (did you mean "int64"?)\n'
            "    int46[b]\n"
            "    ^~~~~\n"
            "  dtypes: uint8, int8, int16, int32, int64, float16, float32, float64, complex64, "
            "bool, bfloat16",
        ),
        (
            "int64[batch, 4]",
            'unknown dim "batch"\n'
            "    int64[batch, 4]\n"
            "          ^~~~~\n"
            "  dims declared in dynamic_dims: b",
        ),
        (
            "int64(b)",
            'expected "[" after the dtype (a scalar is "int64[]"), got "("\n'
            "    int64(b)\n"
            "         ^",
        ),
        (
            "int64[b",
            'expected "," or "]", got the end of the text\n    int64[b\n           ^',
        ),
        (
            "int64[b 4]",
            'expected "," or "]", got "4"\n    int64[b 4]\n            ^',
        ),
        (
            "int64[b, , 4]",
            'expected a size, a dim or an expression, got ","\n'
            "    int64[b, , 4]\n"
            "             ^",
        ),
        (
            "[b]",
            'expected a dtype, got "["\n    [b]\n    ^\n'
            '  a spec looks like "int64[batch, seq] in 0..30521"',
        ),
        ("", 'expected a dtype, got the end of the text\n    \n    ^\n'
             '  a spec looks like "int64[batch, seq] in 0..30521"'),
        ("int64[b] @", 'unexpected character "@"\n    int64[b] @\n             ^'),
        (
            "int64[b] in 5..1",
            "the range is empty: 5 is larger than 1\n"
            "    int64[b] in 5..1\n"
            "                ^~~~\n"
            '  did you mean "1..5"?',
        ),
        (
            "int64[b] in 0..1.5",
            "values of int64 are integers\n    int64[b] in 0..1.5\n                   ^~~",
        ),
        (
            "uint8[b] in 0..256",
            "uint8 holds 0 to 255, not 256\n    uint8[b] in 0..256\n                   ^~~",
        ),
        (
            "int64[b] in 7",
            'expected ".." after 7, as in "7..64", got the end of the text\n'
            "    int64[b] in 7\n"
            "                 ^",
        ),
        (
            "complex64[b] in 0..1",
            "complex64 values have no order, so no range\n"
            "    complex64[b] in 0..1\n"
            "                    ^~~~",
        ),
        (
            "float32[b / 2]",
            "a size must be an integer: // divides and rounds down, as in seq // 2\n"
            "    float32[b / 2]\n"
            "              ^",
        ),
        (
            "float32[b // 0]",
            "a size is divided by a positive integer\n    float32[b // 0]\n                 ^",
        ),
        (
            "float32[b, 8 // b]",
            "a size is divided by a positive integer\n"
            "    float32[b, 8 // b]\n"
            "                    ^",
        ),
        (
            "float32[(9 - b) // 2]",
            "an expression must grow with its dims, this one shrinks as b grows\n"
            "    float32[(9 - b) // 2]\n"
            "             ^~~~~",
        ),
        (
            "float32[b, (b - 3) // 2]",
            "a size cannot be negative: this one is for the smallest b\n"
            "    float32[b, (b - 3) // 2]\n"
            "                ^~~~~~~~~~~",
        ),
        (
            "float32[b*b]",
            "an expression must be linear in its dims, as in 2*half + 1\n"
            "    float32[b*b]\n"
            "            ^~~",
        ),
        (
            "float32[8, 9 - b]",
            "an expression must grow with its dims, this one shrinks as b grows\n"
            "    float32[8, 9 - b]\n"
            "               ^~~~~",
        ),
        ("float32[2.5]", "a size must be an integer\n    float32[2.5]\n            ^~~"),
        (
            "float32[b - 3]",
            "a size cannot be negative: this one is for the smallest b\n"
            "    float32[b - 3]\n"
            "            ^~~~~",
        ),
    ],
)  # fmt: skip
def test_refuses_spec(spec: str, message: str) -> None:
    assert error(spec, B) == f'//m:e: inputs["x"]: {message}'


@pytest.mark.parametrize(
    ("dims", "message"),
    [
        (
            {"b": "64..1"},
            '//m:e: dynamic_dims["b"]: the range is empty: 64 is larger than 1\n'
            "    64..1\n"
            "    ^~~~~\n"
            '  did you mean "1..64"?',
        ),
        (
            {"b": "-1..4"},
            '//m:e: dynamic_dims["b"]: a size cannot be negative\n    -1..4\n    ^~',
        ),
        (
            {"b": "1..2.5"},
            '//m:e: dynamic_dims["b"]: the ends of a dim\'s range must be integers\n'
            "    1..2.5\n"
            "       ^~~",
        ),
        (
            {"b": "8"},
            '//m:e: dynamic_dims["b"]: a dim needs a range, not a single size\n    8\n    ^\n'
            '  write 8 in place of b in inputs, or give a range such as "1..8"',
        ),
        (
            {"b": "2*hlaf", "half": "1..4"},
            '//m:e: dynamic_dims["b"]: unknown dim "hlaf" (did you mean "half"?)\n'
            "    2*hlaf\n"
            "      ^~~~\n"
            "  dims declared in dynamic_dims: b, half",
        ),
        (
            {"a": "b + 1", "b": "c", "c": "2*a"},
            '//m:e: dynamic_dims["a"]: dims are derived from each other: a -> b -> c -> a\n'
            "    b + 1\n"
            "    ^~~~~",
        ),
        (
            {"a": "1..4", "c": "1..4", "b": "a + c"},
            '//m:e: dynamic_dims["b"]: a derived dim can have only one dim, not a, c\n'
            "    a + c\n"
            "    ^~~~~\n"
            "  write the sum in place of b in inputs",
        ),
        (
            {"a": "1..4", "b": "a - 2"},
            '//m:e: dynamic_dims["b"]: b would be negative for the smallest a\n'
            "    a - 2\n"
            "    ^~~~~",
        ),
        (
            {"b": "1.."},
            '//m:e: dynamic_dims["b"]: expected a number, got the end of the text\n'
            "    1..\n"
            "       ^",
        ),
        (
            {"b": "1...4"},
            '//m:e: dynamic_dims["b"]: unexpected character "."\n    1...4\n       ^',
        ),
        (
            {"class": "1..4"},
            '//m:e: dynamic_dims: "class" cannot be the name of a dim: use letters, digits and '
            "underscores, and no keyword",
        ),
        (
            {"b": "1..4", "seq": "1..8"},
            '//m:e: dynamic_dims["seq"]: no input has a dim "seq". Dims that inputs mention: b. '
            'Write it in an input\'s shape, as in "float32[seq, 8]", or remove it.',
        ),
        (
            {"b": "8..500 step 8"},
            '//m:e: dynamic_dims["b"]: 500 is not among the sizes 8, 16, ...\n'
            "    8..500 step 8\n"
            "       ^~~\n"
            '  did you mean "8..496 step 8"?',
        ),
    ],
)
def test_refuses_dims(dims: dict[str, str], message: str) -> None:
    assert error("float32[b]", dims) == message


@pytest.mark.parametrize(
    ("dim", "reason", "mark"),
    [
        ("8..16 step 0", "a step must be a positive integer", "           ^"),
        ("8..16 step 0.5", "a step must be a positive integer", "           ^~~"),
        ("8..16 step -8", "a step must be a positive integer", "           ^~"),
        ("8..16 step", "expected a number, got the end of the text", "          ^"),
        (
            "8..16 by 2",
            'expected a step, as in "8..512 step 8", or the end of the text, got "by"',
            "      ^~",
        ),
    ],
)
def test_refuses_steps(dim: str, reason: str, mark: str) -> None:
    where = '//m:e: dynamic_dims["b"]'
    assert error("float32[b]", {"b": dim}) == f"{where}: {reason}\n    {dim}\n    {mark}"


SUMS = {"past": "0..9", "seq": "1..4", "twice": "2*seq", "one": "1..1"}


@pytest.mark.parametrize(
    ("size", "text", "bounds"),
    [
        ("past + seq", "past + seq", (1, 13)),
        ("seq + past", "seq + past", (1, 13)),
        ("2*(past + seq) - seq - 1", "2*past + seq - 1", (0, 21)),
        ("past + twice + one", "past + 2*seq + 1", (3, 18)),
    ],
)
def test_a_size_may_be_a_sum_of_dims(size: str, text: str, bounds: tuple[int, int]) -> None:
    dims = parse_dims(SUMS, "//m:e")
    inputs = {"mask": f"int64[{size}]", "x": "int64[past, twice, one]"}
    (mask,) = parse_specs(inputs, dims, "//m:e")["mask"].shape
    assert str(mask) == text
    assert dims.range(mask) == bounds


def test_a_dim_of_a_sum_needs_a_size_that_gives_its_value() -> None:
    dims = parse_dims({"past": "0..9", "seq": "1..4"}, "//m:e")
    with pytest.raises(DriverError) as caught:
        parse_specs({"mask": "int64[past + seq]", "x": "int64[seq]"}, dims, "//m:e")
    assert str(caught.value) == (
        '//m:e: inputs["mask"]: "past + seq" needs the value of "past", which no other size gives. '
        'Some input must have a size with this dim alone, as in "float32[past, 8]"; or give this '
        "size a dim of its own."
    )


@pytest.mark.parametrize(
    ("size", "text", "bounds"),
    [
        ("seq // 2", "seq//2", (0, 2)),
        ("(seq + 1) // 2", "(seq + 1)//2", (1, 2)),
        ("((seq + 1) // 2 + 1) // 2", "(((seq + 1)//2) + 1)//2", (1, 1)),
        ("past + seq // 2", "past + (seq//2)", (0, 11)),
        ("2 * (past // 4) + 1", "2*(past//4) + 1", (1, 5)),
        ("(past + 3*seq - 1) // 2", "(past + 3*seq - 1)//2", (1, 10)),
        # What a divisor divides needs no division.
        ("(4*past + 3) // 2", "2*past + 1", (1, 19)),
        ("twice // 2", "seq", (1, 4)),
        ("(twice + seq + 5) // 2", "(3*seq + 5)//2", (4, 8)),
        ("(past + one) // 3", "(past + 1)//3", (0, 3)),
        ("one // 2", "0", (0, 0)),
    ],
)
def test_a_size_may_be_a_quotient(size: str, text: str, bounds: tuple[int, int]) -> None:
    dims = parse_dims(SUMS, "//m:e")
    inputs = {"mask": f"int64[{size}]", "x": "int64[past, twice, one]"}
    (mask,) = parse_specs(inputs, dims, "//m:e")["mask"].shape
    assert str(mask) == text
    assert dims.range(mask) == bounds
    written = eval(compile(size, "", "eval"), {"past": 7, "seq": 3, "twice": 6, "one": 1})
    assert mask.evaluate({"past": 7, "seq": 3}) == written


def test_a_quotient_gives_no_dim_its_value() -> None:
    dims = parse_dims({"seq": "1..4"}, "//m:e")
    with pytest.raises(DriverError) as caught:
        parse_specs({"x": "int64[seq // 2]"}, dims, "//m:e")
    assert str(caught.value) == (
        '//m:e: inputs["x"]: "seq//2" needs the value of "seq", which no other size gives. Some '
        'input must have a size with this dim alone, as in "float32[seq, 8]"; or give this size a '
        "dim of its own."
    )


def test_a_derived_dim_is_no_quotient() -> None:
    assert error("float32[seq]", {"seq": "1..4", "half": "seq // 2"}) == (
        '//m:e: dynamic_dims["half"]: division is not possible in dynamic_dims: declare the '
        'smaller dim and derive the larger from it, as in {"half": "1..256", "seq": "2*half"}; or '
        "write the division in place of the dim in inputs\n"
        "    seq // 2\n"
        "        ^~"
    )


def test_a_dim_may_be_used_through_another_only() -> None:
    assert specs("float32[seq]", {"half": "1..8", "seq": "2*half"}).shape == (affine(2, "half", 0),)


def sizes(
    specs_: Mapping[str, str], dims: Mapping[str, str], smooth: bool = False
) -> dict[str, int]:
    parsed = parse_dims(dims, "//m:e")
    shapes = [e for s in parse_specs(specs_, parsed, "//m:e").values() for e in s.shape]
    return sample_sizes(parsed, shapes, smooth)


def test_a_step_makes_a_dim_of_multiples() -> None:
    dims = parse_dims({"batch": "8..512 step 8", "odd": "1..9 step 2", "rows": "2*batch"}, "//m:e")
    assert dims.ranges == {"batch_steps": (1, 64), "odd_steps": (0, 4)}
    assert dims.derived == {
        "batch": affine(8, "batch_steps", 0),
        "odd": affine(2, "odd_steps", 1),
        "rows": affine(16, "batch_steps", 0),
    }
    shown = [(dim.name, dim.min, dim.max) for dim in dims.manifest_dims()]
    assert shown == [
        ("batch", 8, 512),
        ("batch_steps", 1, 64),
        ("odd", 1, 9),
        ("odd_steps", 0, 4),
        ("rows", 16, 1024),
    ]
    assert dims.declared_sizes({"batch_steps": 3, "odd_steps": 2}) == {"batch": 24, "odd": 5}
    assert dims.declared_text("batch_steps", 2, 64) == ('dynamic_dims["batch"]', "16..512 step 8")


def test_the_smallest_steps() -> None:
    dims = parse_dims({"n": "1..4 step 1", "m": "8..8 step 3", "k": "0..6 step 6"}, "//m:e")
    assert dims.ranges == {"n": (1, 4), "k_steps": (0, 1)}
    assert dims.fixed == {"m": 8}
    taken = parse_dims({"n": "2..4 step 2", "n_steps": "1..9"}, "//m:e")
    assert taken.ranges == {"n_steps_": (1, 2), "n_steps": (1, 9)}


def test_the_dim_that_counts_steps_is_not_to_be_used() -> None:
    message = error("float32[n_steps]", {"n": "2..8 step 2"})
    assert 'unknown dim "n_steps"' in message
    assert "dims declared in dynamic_dims: n" in message


def test_sample_sizes_do_not_coincide() -> None:
    chosen = sizes(
        {"x": "float32[b, s, 7]", "y": "float32[b + 1, 2*s, h, 5]"},
        {"b": "1..64", "s": "1..64", "h": "1..64"},
    )
    b, s, h = chosen["b"], chosen["s"], chosen["h"]
    everything = [b, b + 1, s, 2 * s, h, 7, 5]
    assert len(set(everything)) == len(everything) and not {0, 1} & set(everything)
    assert all(1 <= v <= 64 for v in (b, s, h))


def test_sample_sizes_stay_in_the_smallest_ranges() -> None:
    assert sizes({"x": "float32[a, c]"}, {"a": "0..1", "c": "1..2"}) == {"a": 1, "c": 2}


def test_sample_sizes_are_in_the_middle_and_divisible_if_asked() -> None:
    assert sizes({"x": "float32[s]"}, {"s": "2..2048"}) == {"s": 61}
    assert sizes({"x": "float32[s]"}, {"s": "2..2048"}, smooth=True) == {"s": 64}


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("bool", """\
//m:e: inputs["x"]: a Python bool chooses code, so it can't vary from call to call
    bool
    ^~~~
  write the value that the program is made for, "True" or "False"; or "bool[]" for a tensor"""),
        ("int", """\
//m:e: inputs["x"]: an int needs a range, which the program is exported and tested for
    int
    ^~~
  write for example "int in 1..50"; for one value alone, write the value, as in "5\""""),
        ("int in 5..5", """\
//m:e: inputs["x"]: the range has one value only
    int in 5..5
           ^~~~
  write the value: "5\""""),
        ("int in 1..2.5", """\
//m:e: inputs["x"]: values of int64 are integers
    int in 1..2.5
              ^~~"""),
        ("float in 2..1", """\
//m:e: inputs["x"]: the range is empty: 2 is larger than 1
    float in 2..1
             ^~~~
  did you mean "1..2"?"""),
        ("float 3", """\
//m:e: inputs["x"]: expected "in low..high" or the end of the text, got "3"
    float 3
          ^"""),
    ],
)  # fmt: skip
def test_wrong_numbers(spec: str, message: str) -> None:
    assert error(spec) == message


def test_literals() -> None:
    literals = {"mode": "'max'", "causal": "True", "mask": "None", "k": "5", "size": "(2, 0.5)"}
    specs_ = {"x": "float32[3]", "t": "float", "wrong": "max", "list": "[1]"}
    assert split_literals({**literals, **specs_}) == (
        specs_,
        {"mode": "max", "causal": True, "mask": None, "k": 5, "size": (2, 0.5)},
    )


def test_an_int_is_the_value_of_a_dim() -> None:
    dims = parse_dims({"k": "1..4"}, "//m:e")
    texts = {"x": "float32[k]", "k": "int in 1..50", "cache[0].n": "int in 0..3"}
    found, with_ints = with_numbers(parse_specs(texts, dims, "//m:e"), dims)
    assert [spec.value for spec in found.values()] == [None, "k_value", "cache_0_n"]
    assert with_ints.ranges == {"k": (1, 4), "k_value": (1, 50), "cache_0_n": (0, 3)}
    assert with_ints.numbers == {"k_value": "k", "cache_0_n": "cache[0].n"}


def test_auto_is_for_exports() -> None:
    # An export replaces it before it parses the dims.
    assert (
        error("float32[b]", {"b": "auto"})
        == """\
//m:e: dynamic_dims["b"]: "auto" is for models that are exported from their source
    auto
    ^~~~
  give a range, such as "1..64", or a relation to another dim"""
    )
