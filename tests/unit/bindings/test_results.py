"""Structures, numbers and constants in results, in the generated code."""

from __future__ import annotations

import ast
import dataclasses
from pathlib import Path

import pytest
from aoti_driver.base.errors import DriverError
from aoti_driver.bindings import build_model, header, implementation, model, pymodule, stub
from aoti_driver.contract.program_parts import Output
from aoti_driver.contract.result_tree import Result

from tests.unit.bindings.samples import LIBRARY, PROGRAM, SPEC
from tests.unit.bindings.test_bindings import compiler_errors

OUTPUTS = (
    Output("logits", "logits", "float32", ()),
    Output("n", "n", "int64", (), number="int"),
    Output("mean", "mean", "float64", (), number="float"),
    Output("any", "any", "bool", (), number="bool"),
)


def leaf(name: str) -> Result:
    return Result("output", name)


def dict_of(**items: Result) -> Result:
    return Result("dict", keys=tuple(items), items=tuple(items.values()))


def point(x: Result, y: Result, *, name: str = "Point") -> Result:
    return Result("object", name, keys=("x", "class"), items=(x, y))


TREE = dict_of(
    logits=leaf("logits"),
    numbers=Result("list", items=(leaf("n"), leaf("mean"), Result("none"))),
    pair=Result("tuple", items=(leaf("any"),)),
    constants=Result(
        "dict",
        keys=(3, 4),
        items=(Result("int", "low", str(-(2**63))), Result("float", "far", "-inf")),
    ),
    mode=Result("str", "mode", 'say "x"\n'),
    flag=Result("bool", "flag", "True"),
    first=point(Result("none"), Result("absent")),
    second=point(Result("none"), Result("none")),
    third=point(Result("int", "third", "1"), Result("none")),
    model=point(Result("none"), Result("none"), name="Model"),
)


def build(result: Result = TREE, outputs: tuple[Output, ...] = OUTPUTS) -> model.Model:
    program = dataclasses.replace(PROGRAM, outputs=outputs, result=result)
    return build_model.build(SPEC, dataclasses.replace(LIBRARY, program=program))


def test_fields_in_cpp(tmp_path: Path) -> None:
    text = header.generate(build())
    fields = text[text.index("struct Outputs {") :].split("\n  };")[0].splitlines()[1:]
    assert [line.strip() for line in fields] == [
        "::aoti::TypedTensor<float, 0> logits;  // []",
        "std::int64_t n = {};  // int",
        "double mean = {};  // float",
        "bool any = {};  // bool",
        "static constexpr std::int64_t low = INT64_MIN;  // constant",
        "static constexpr double far = -__builtin_inf();  // constant",
        'static constexpr std::string_view mode = "say \\"x\\"\\012";  // constant',
        "static constexpr bool flag = true;  // constant",
        "static constexpr std::int64_t third = 1;  // constant",
    ]
    assert ".n = ::aoti::TypedTensor<std::int64_t, 0>(std::move((*results)[1]))()" in (
        implementation.generate(build())
    )
    path = tmp_path / "encoder.h"
    path.write_text(text, encoding="utf-8")
    assert compiler_errors(path, "c++20") == []


def test_table_of_the_python_module() -> None:
    text = pymodule.generate(build())
    rows = text[text.index("kResult[] = {") :].split("\n};")[0].splitlines()[1:]
    assert [row.strip().replace("ResultKind::", "") for row in rows] == [
        '{kDict, 10, ""},',
        '{kTensor, 0, "", "logits"},',
        '{kList, 3, "", "numbers"},',
        '{kNumber, 1, ""},',
        '{kNumber, 2, ""},',
        '{kNone, 0, ""},',
        '{kTuple, 1, "", "pair"},',
        '{kNumber, 3, ""},',
        '{kDict, 2, "", "constants"},',
        '{kInt, 0, "-9223372036854775808", "3", true},',
        '{kFloat, 0, "-inf", "4", true},',
        '{kStr, 0, "say \\"x\\"\\012", "mode"},',
        '{kBool, 0, "True", "flag"},',
        '{kObject, 2, "Point", "first"},',
        '{kNone, 0, "", "x"},',
        '{kNone, 0, "", "class_"},',
        '{kObject, 2, "Point", "second"},',
        '{kNone, 0, "", "x"},',
        '{kNone, 0, "", "class_"},',
        '{kObject, 2, "Point_2", "third"},',
        '{kInt, 0, "1", "x"},',
        '{kNone, 0, "", "class_"},',
        '{kObject, 2, "Model_2", "model"},',
        '{kNone, 0, "", "x"},',
        '{kNone, 0, "", "class_"},',
    ]
    assert "      .result = kResult,\n" in text


def test_types_in_the_stub() -> None:
    text = stub.generate(build())
    ast.parse(text)
    assert "-> _Outputs: ..." in text
    assert '"numbers": list[int | float | None], "pair": tuple[bool]' in text
    assert '"constants": dict[int, int | float]' in text
    assert "class Point_2(NamedTuple):\n    x: int\n    class_: None\n" in text


def test_object_at_the_top() -> None:
    text = stub.generate(build(point(leaf("n"), leaf("mean"))))
    assert "class Outputs(NamedTuple):\n    x: int\n    class_: float\n" in text
    assert "-> Outputs: ..." in text


@pytest.mark.parametrize(
    ("result", "problem"),
    [
        (dict_of(x=leaf("gone")), 'the result has the unknown output "gone"'),
        (
            dict_of(x=Result("int", "x", "1; evil")),
            'the result has the int "1; evil", which is none',
        ),
        (
            Result("object", "P", keys=("a b",), items=(leaf("n"),)),
            "the result's P has the field \"a b\", which can't be a name in Python. Return a dict "
            "in place of the object, or rename the field.",
        ),
        (
            Result("object", "P", keys=("_x", "x"), items=(leaf("n"), leaf("mean"))),
            'the fields of the result\'s P: "_x" and "x" both become "x" in the generated code; '
            "rename one of them",
        ),
        (
            dict_of(x=leaf("n"), y=Result("int", "n", "1")),
            'results "n" and "n" both become "n" in the generated code; rename one of them',
        ),
    ],
)
def test_wrong_results(result: Result, problem: str) -> None:
    with pytest.raises(DriverError) as caught:
        build(result)
    assert str(caught.value) == f"//models/text:encoder: {problem}"


def test_wrong_numbers() -> None:
    wrong = Output("n", "n", "float32", (), number="int")
    with pytest.raises(DriverError) as caught:
        build(leaf("n"), (wrong,))
    assert str(caught.value) == '//models/text:encoder: output "n" can\'t be a Python int'
