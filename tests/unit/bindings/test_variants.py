"""Functions with variants: their arguments, and the calls that no variant takes."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from aoti_driver.base.errors import DriverError
from aoti_driver.bindings import (
    coverage,
    method_bindings,
    method_header,
    method_implementation,
    method_pymodule,
    method_stub,
    operator,
)
from aoti_driver.bindings.functions import Function, functions
from aoti_driver.bindings.model import MethodsSpec, Space, Spec
from aoti_driver.contract.code_parts import Codegen
from aoti_driver.contract.manifest import LibraryManifest, ProgramManifest
from aoti_driver.contract.manifest_file import read_manifest, to_json
from aoti_driver.contract.program_parts import Dim, FixedArgument, Input, Output
from aoti_driver.contract.size_expr import Name, Number, SizeExpr, affine, operation

NAMES = Spec("models", "Pooler", "models/pooler.h", "pooler", "_main/models/w", False, 0)
N = Dim("n", 1, 64)


def tensor(name: str, dtype: str = "float32", size: SizeExpr | None = None) -> Input:
    return Input(name, name, dtype, (size or Name("n"),), (Number(1),))


def number(name: str, kind: Any, **more: Any) -> Input:
    dtype = {"int": "int64", "float": "float64"}[kind]
    return Input(name, name, dtype, (), (), number=kind, **more)


def fixed(name: str, value: str, before: int, default: bool = False) -> FixedArgument:
    return FixedArgument(name, name, value, before, default)


def library(
    name: str,
    *arguments: Input | FixedArgument,
    dims: tuple[Dim, ...] = (N,),
    guards: tuple[SizeExpr, ...] = (),
    output: str = "float32",
) -> LibraryManifest:
    return LibraryManifest(
        program=ProgramManifest(
            label=f"//models:pooler_{name}",
            name=f"pooler_{name}",
            torch_version="2.13.0+cpu",
            strict=False,
            dims=dims,
            inputs=tuple(item for item in arguments if isinstance(item, Input)),
            outputs=(Output("output", "", output, (Number(2),)),),
            constants=(),
            graph_sha256="",
            guards=guards,
            fixed=tuple(item for item in arguments if isinstance(item, FixedArgument)),
        ),
        codegen=Codegen(f"m_{name}", "cpu", "x86-64", {}, (), ()),
        shim="slim",
    )


def spec(*variants: str, **spaces: Space) -> MethodsSpec:
    keys = tuple(f"forward.{variant}" for variant in variants)
    named = {key.replace("__", "."): space for key, space in spaces.items()}
    return MethodsSpec("//models:pooler", "m_pooler", keys, NAMES, True, named)


def build(*libraries: LibraryManifest) -> Function:
    names = [library.program.name.removeprefix("pooler_") for library in libraries]
    (function,) = functions(method_bindings.build(spec(*names), libraries))
    return function


X = tensor("x")
MASK = tensor("mask", "bool")
MASKED = library("masked", X, MASK, fixed("mode", "'mean'", 2, default=True))
MEAN = library("mean", X, fixed("mask", "None", 1, default=True), fixed("mode", "'mean'", 1, True))
MAX = library("max", X, fixed("mask", "None", 1, default=True), fixed("mode", "'max'", 1))


def test_arguments() -> None:
    function = build(MEAN, MASKED, MAX)
    shown = [(a.name, a.text, a.has_default, a.default) for a in function.arguments]
    assert shown == [
        ("x", "float32[n]", False, None),
        ("mask", "bool[n] | None", True, None),
        ("mode", "'mean' | 'max'", True, "mean"),
    ]
    assert [taken.index for taken in function.arguments[1].taken] == [-1, 1, -1]


def test_an_argument_that_does_not_vary_is_none() -> None:
    same = [fixed("mode", "'a'", 1), fixed("shape", "(1, 2)", 1)]
    one, two = library("one", X, *same), library("two", tensor("x", "float64"), *same)
    assert [a.name for a in build(one, two).arguments] == ["x"]


def test_what_a_variant_lacks_is_none() -> None:
    function = build(library("first", X, fixed("past", "None", 1)), library("next", X, MASK))
    shown = [(a.name, a.text, a.has_default, a.default) for a in function.arguments]
    assert shown == [("x", "float32[n]", False, None), ("mask", "bool[n] | None", True, None)]


def test_numbers_of_two_types_are_floats() -> None:
    one = library("one", X, fixed("k", "1", 1))
    any_k = library("any", X, number("k", "float", values=(0.0, 2.0), default=0.5))
    (_, k) = build(one, any_k).arguments
    assert (k.value_kind, k.default, k.taken[0].value) == ("float", 0.5, 1.0)


@pytest.mark.parametrize(
    ("one", "two", "message"),
    [
        ("'a'", "1", 'inputs["k"]: its values have the types int, str; the values of one argument'),
        (
            "(1, 2)",
            "(1, 3)",
            'inputs["k"]: a tuple can\'t choose a variant: give it the same',
        ),
    ],
)
def test_values_that_can_not_choose(one: str, two: str, message: str) -> None:
    with pytest.raises(DriverError) as e:
        build(library("one", X, fixed("k", one, 1)), library("two", X, fixed("k", two, 1)))
    assert str(e.value).startswith(f"//models:pooler: {message}")


def test_the_class(check_cpp: Callable[[str, str, str], None]) -> None:
    half = library("half", tensor("x", "bfloat16"), MASK, fixed("mode", "'mean'", 2), output="int8")
    libraries = []
    for one in [MEAN, MASKED, MAX, half]:
        flag = fixed("flag", str(one is MEAN), len(one.program.inputs))
        program = dataclasses.replace(one.program, fixed=(*one.program.fixed, flag))
        libraries.append(dataclasses.replace(one, program=program))
    methods = method_bindings.build(spec("mean", "masked", "max", "half"), libraries)
    header = method_header.generate(methods)
    for line in (
        "    std::variant<::aoti::TensorRef<const float, 1>, "
        "::aoti::TensorRef<const ::aoti::BFloat16, 1>> x;  // float32[n] | bfloat16[n]",
        "    std::optional<::aoti::TensorRef<const bool, 1>> mask;  // bool[n] | None",
        """    std::string_view mode = "mean";  // 'mean' | 'max\'""",
        "    std::optional<bool> flag;  // True | False",
        "    std::variant<::aoti::TypedTensor<float, 1>, ::aoti::TypedTensor<std::int8_t, 1>> "
        "output;  // float32[2] | int8[2]",
        "  ::aoti::Result<Outputs> Run(const Inputs& inputs) const;",
        "  static ::aoti::Explanation Explain(const Inputs& inputs);",
    ):
        assert line in header.splitlines()
    check_cpp("models/pooler.h", header, method_implementation.generate(methods))
    assert '.variant = "half"' in method_pymodule.generate(methods)
    stub = method_stub.generate(methods)
    compile(stub, "pooler.pyi", "exec")
    assert (
        "    def explain(self, x: TensorLike, mask: TensorLike | None = None, mode: str = 'mean', "
        "*, flag: bool) -> Explanation:" in stub.splitlines()
    )
    assert "-> Outputs | OutputsHalf:" in stub


def test_manifest(tmp_path: Path) -> None:
    path = tmp_path / "manifest.json"
    path.write_text(to_json(MAX), encoding="utf-8")
    assert read_manifest(path, LibraryManifest) == MAX
    without = library("plain", X)
    path.write_text(to_json(without), encoding="utf-8")
    assert "fixed" not in json.loads(path.read_text(encoding="utf-8"))["program"]
    assert read_manifest(path, LibraryManifest) == without


def check(declared: Space, *variants: tuple[LibraryManifest, Space]) -> None:
    names = [library.program.name.removeprefix("pooler_") for library, _ in variants]
    request = spec(*names)
    spaces = {"forward": declared}
    spaces |= {f"forward.{name}": own for name, (_, own) in zip(names, variants)}
    methods = method_bindings.build(request, [library for library, _ in variants])
    for function in functions(methods):
        coverage.check("//models:pooler", function, spaces)


def space(dims: str = "", **inputs: str) -> Space:
    alternatives = {name: tuple(text.split(" | ")) for name, text in inputs.items()}
    return Space(alternatives, {"n": dims} if dims else {})


DECLARED = space("1..64", x="float32[n]", mask="bool[n] | None", mode="'mean' | 'max'")
OF_MASKED = space("1..64", x="float32[n]", mask="bool[n]", mode="'mean'")
OF_MEAN = space("1..64", x="float32[n]", mask="None", mode="'mean'")
OF_MAX = space("1..64", x="float32[n]", mask="None", mode="'max'")


def test_a_call_that_no_variant_takes() -> None:
    with pytest.raises(DriverError) as e:
        check(DECLARED, (MASKED, OF_MASKED), (MEAN, OF_MEAN), (MAX, OF_MAX))
    assert str(e.value) == (
        "//models:pooler: no variant takes a call with x = float32[1], mask = bool[1], "
        "mode = 'max', which `inputs` and `dynamic_dims` allow:\n"
        "  not masked: mode must be 'mean'\n"
        "  not mean: mask must be None\n"
        "  not max: mask must be None\n"
        "  Add a variant for such calls, or leave them out of `inputs` or `dynamic_dims`."
    )


def sized(name: str, low: int, high: int, step: int = 1) -> tuple[LibraryManifest, Space]:
    if low == high:
        return library(name, tensor("x", size=Number(low)), dims=()), space(
            f"{low}..{low}", x="float32[n]"
        )
    text = f"{low}..{high}" + (f" step {step}" if step > 1 else "")
    if step == 1:
        return library(name, X, dims=(Dim("n", low, high),)), space(text, x="float32[n]")
    size = affine(step, "n_steps", low % step)
    counted = Dim("n_steps", low // step, high // step)
    dims = (counted, Dim("n", low, high, alias=size))
    return library(name, tensor("x", size=size), dims=dims), space(text, x="float32[n]")


@pytest.mark.parametrize(
    ("variants", "hole"),
    [
        ([("one", 1, 1), ("rest", 2, 64)], None),
        ([("eight", 8, 64, 8), ("any", 1, 64)], None),
        ([("one", 1, 1), ("rest", 3, 64)], "float32[2]"),
        ([("low", 1, 31), ("high", 33, 64)], "float32[32]"),
        ([("low", 1, 63)], "float32[64]"),
        ([("even", 2, 64, 2), ("one", 1, 1)], "float32[63]"),
        ([("eight", 8, 64, 8), ("low", 1, 57)], "float32[63]"),
        ([("even", 2, 64, 2), ("odd", 1, 63, 2)], None),
    ],
)
def test_sizes(variants: list[Any], hole: str | None) -> None:
    declared = space("1..64", x="float32[n]")
    if hole is None:
        check(declared, *[sized(*variant) for variant in variants])
        return
    with pytest.raises(DriverError) as e:
        check(declared, *[sized(*variant) for variant in variants])
    assert f"no variant takes a call with x = {hole}, which" in str(e.value)


@pytest.mark.parametrize(
    ("variants", "message"),
    [
        (
            [("any", 1, 64), ("eight", 8, 64, 8)],
            'variants["eight"] never runs: earlier variants take all of its calls, such as '
            "x = float32[64]. Put it before them, or remove it.",
        ),
        (
            [("any", 1, 64), ("more", 65, 128)],
            'variants["more"] never runs: it takes no call that `inputs` and `dynamic_dims` allow. '
            "Correct it, or remove it.",
        ),
    ],
)
def test_a_variant_that_never_runs(variants: list[Any], message: str) -> None:
    with pytest.raises(DriverError) as e:
        check(space("1..64", x="float32[n]"), *[sized(*variant) for variant in variants])
    assert str(e.value) == f"//models:pooler: {message}"


def test_a_structure_that_may_be_none() -> None:
    declared = space("1..64", past="None", **{"past[0]": "float32[n]", "past[1]": "float32[n]"})
    parts = [
        Input(f"past_{i}", f"past[{i}]", "float32", (Name("n"),), (Number(1),)) for i in (0, 1)
    ]
    first = library("first", fixed("past", "None", 0), dims=()), space("", past="None")
    rest = library("rest", *parts), space("1..64", **{p.path: "float32[n]" for p in parts})
    check(declared, first, rest)
    with pytest.raises(DriverError) as e:
        check(declared, rest)
    assert "no variant takes a call with past = None, which" in str(e.value)
    with pytest.raises(DriverError) as e:
        check(declared, first)
    assert "with past[0] = float32[1], past[1] = float32[1], which" in str(e.value)


def test_a_dim_of_a_structure_that_is_none_counts_as_zero() -> None:
    sizes = {"m": "1..8", "n": "1..64"}
    texts = {"past": "None", "past[0]": "float32[n]", "x": "float32[m]", "mask": "float32[n + m]"}
    declared = Space({path: (text,) for path, text in texts.items()}, sizes)
    m, n = Dim("m", 1, 8), Dim("n", 1, 64)
    x = tensor("x", size=Name("m"))
    past = Input("past_0", "past[0]", "float32", (Name("n"),), (Number(1),))
    longer = tensor("mask", size=operation("+", Name("n"), Name("m")))
    first = library("first", x, tensor("mask", size=Name("m")), fixed("past", "None", 0), dims=(m,))
    rest = library("rest", past, x, longer, dims=(m, n))
    first_space, rest_space = Space({}, {"m": "1..8", "n": "0..0"}), Space({}, sizes)
    check(declared, (first, first_space), (rest, rest_space))
    with pytest.raises(DriverError, match=r"x = float32\[1\], mask = float32\[1\], which"):
        check(declared, (rest, rest_space))


def test_conditions() -> None:
    """What all programs need is the model's; what one needs is its own."""
    even = operation("==", operation("%", Name("n"), Number(2)), Number(0))
    own = space("1..64", x="float32[n]")
    check(own, (library("only", X, guards=(even,)), own))
    low = sized("low", 1, 9)[0]
    guarded = library("guarded", X, guards=(even,))
    with pytest.raises(DriverError, match=r"x = float32\[63\], which") as e:
        check(own, (low, space("1..9", x="float32[n]")), (guarded, own))
    assert "not guarded: it needs n % 2 == 0" in str(e.value)


@pytest.mark.parametrize("values", [(2, 50), None])
def test_values_of_numbers(values: tuple[int, int] | None) -> None:
    """An integer's range is that of its dim, whether its input says it too or not."""
    declared = space("", k="int in 1..50", f="float in 0..1")
    k = Input("k", "k", "int64", (), (), number="int", value="k", values=values)
    f = number("f", "float", values=(0.0, 1.0))
    many = library("many", k, f, dims=(Dim("k", 2, 50),))
    of_many = space("", k="int in 2..50", f="float in 0..1")
    one = library("one", f, fixed("k", "1", 0), dims=())
    check(declared, (many, of_many), (one, space("", k="1", f="float in 0..1")))
    with pytest.raises(DriverError, match=r"no variant takes a call with k = 1, f = 0\.0, which"):
        check(declared, (many, of_many))
    half = library("half", fixed("k", "1", 0), number("f", "float", values=(0.5, 1.0)), dims=())
    with pytest.raises(DriverError, match=r"k = 1, f = 0\.0, which"):
        check(declared, (many, of_many), (half, space("", k="1", f="float in 0.5..1")))


def test_operator() -> None:
    request = operator.Spec("//models:op", "models::op", "models.pooler", (), ())
    one, rest = sized("one", 1, 1)[0], sized("rest", 2, 64)[0]
    text = operator.generate(request, [one, rest])
    assert "OPERATOR = Variants((VARIANT_0, VARIANT_1))" in text
    compile(text, "op.py", "exec")
    with pytest.raises(DriverError) as e:
        operator.generate(request, [MEAN, MAX])
    assert str(e.value).startswith(
        '//models:op: //models:pooler_mean is chosen by the value of "mode", but an operator takes'
    )
    with pytest.raises(DriverError) as e:
        operator.generate(request, [one, library("two", X, MASK)])
    assert str(e.value) == (
        "//models:op: //models:pooler_two takes and returns x (tensor), mask (tensor) -> 1 "
        "tensors, and //models:pooler_one x (tensor) -> 1 tensors: the variants of an operator "
        "have one schema"
    )
