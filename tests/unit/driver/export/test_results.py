"""What forward() returns: containers, numbers and constants."""

from __future__ import annotations

import json
from typing import Any

import pytest
import torch
from aoti_driver.base.errors import DriverError
from aoti_driver.bindings import results
from aoti_driver.contract.manifest import ProgramManifest
from aoti_driver.verify.reference import outputs_of
from torch.utils import _pytree as pytree

from tests.unit.driver.harness import Export, codegen

NUMBERS = """[
    s, s / 2, s > 4, s * s + 1, k, t, x.sum().item(), (x > 0).sum().item(),
    (x > 0).any().item(), 3, 0.25, True, "mean", None,
]"""
INPUTS = {"x": "float32[n, 3]", "k": "int in 1..50", "t": "float"}
DIMS = {"n": "1..64"}


def model(result: str, before: str = "") -> str:
    return f"""
import collections
import dataclasses
import torch
from typing import Any, NamedTuple

class Point(NamedTuple):
    x: Any
    y: Any

@dataclasses.dataclass
class Loss:
    value: Any
    gradient: Any
    count: Any

torch.export.register_dataclass(Loss)

@dataclasses.dataclass
class Unknown:
    value: Any

{before}
class M(torch.nn.Module):
    def forward(self, x, k: int = 2, t: float = 0.5):
        s = x.shape[0]
        return {result}

build = M
"""


def text(manifest: ProgramManifest) -> str:
    assert manifest.result is not None
    return results.text(manifest.result)


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        ("{'a': x + 1, 'b': [x, (x,)]}", '{"a": a, "b": [b_0, (b_1_0,)]}'),
        ("(x, None)", "(output, None)"),
        ("[x, [], ()]", "[output, [], ()]"),
        ("x, {}, {3: x}", "(output_0, {}, {3: output_2_3})"),
        ("Point(x, 2)", "Point(x=x, y=2)"),
        ("x, Point([x], None)", "(output_0, Point(x=[output_1_x_0], y=None))"),
        ("Loss(x, None, 'a')", 'Loss(value=value, gradient=None, count="a")'),
        ("Loss(None, None, x)", "Loss(value=None, gradient=None, count=count)"),
        ("collections.OrderedDict(b=x, a=x + 1)", '{"b": b, "a": a}'),
        ("{'a b': x, 'a_b': x + 1, 'class': -2}", '{"a b": a_b, "a_b": a_b_2, "class": -2}'),
        ("x.shape, x", "((output_0_0, 3), output_1)"),
        ("s", "output"),
        ("x, float('inf')", "(output, inf)"),
    ],
)
def test_structures(export: Export, result: str, expected: str) -> None:
    assert text(export(model(result), {"x": "float32[n, 3]"}, DIMS).manifest) == expected


@pytest.mark.parametrize(
    "result", ["x", "(x, x + 1)", "(x,)", "Point(x, x + 1)", "x.max(0)", "Loss(x, x, x)"]
)
def test_tensors_alone_have_no_tree(export: Export, result: str) -> None:
    assert export(model(result), {"x": "float32[n, 3]"}, DIMS).manifest.result is None


def test_results_of_transformers(export: Export) -> None:
    """They are dicts and dataclasses."""
    before = """
@dataclasses.dataclass
class Output(collections.OrderedDict):
    logits: Any = None
    cache: Any = None

def make(values, keys):
    output = Output()
    output.update(zip(keys, values))
    return output

torch.utils._pytree.register_pytree_node(
    Output, lambda o: (list(o.values()), list(o.keys())), make, serialized_type_name="m.Output"
)
"""
    inputs = {"x": "float32[n, 3]"}
    flat = export(model("make([x + 1], ['logits'])", before), inputs, DIMS).manifest
    assert flat.result is None and flat.outputs[0].name == "logits"
    nested = export(model("make([x + 1, (x,)], ['logits', 'cache'])", before), inputs, DIMS)
    assert text(nested.manifest) == "Output(logits=logits, cache=(cache_0,))"


@pytest.mark.parametrize("strict", [False, True])
def test_numbers(export: Export, strict: bool) -> None:
    exported = export(model(NUMBERS), INPUTS, DIMS, strict=strict)
    manifest = exported.manifest
    kinds = [output.number for output in manifest.outputs]
    assert kinds == ["int", "float", "bool", "int", "int", "float", "float", "int", "bool"]
    assert text(manifest).endswith('output_8, 3, 0.25, True, "mean", None]')
    module = exported.program().module(check_guards=False)
    for n, k, t in ((2, 3, 0.5), (9, 50, -2.0)):
        x = torch.randn(n, 3)
        given = module(x, k, torch.tensor(t, dtype=torch.float64))
        s = x.shape[0]
        eager: list[Any] = eval(NUMBERS, {"s": s, "x": x, "k": k, "t": t})
        expected = outputs_of(eager, manifest)
        assert [float(a) for a in given[:9]] == pytest.approx([float(b) for b in expected])
        assert [a.dtype for a in given[:9]] == [b.dtype for b in expected]
        assert given[9:] == [3, 0.25, True, None, None]
    code = codegen(exported)
    assert "item_float32" not in code, "a number out of a tensor stays there"


def test_a_number_that_is_nan_for_an_empty_batch(export: Export) -> None:
    result = export(model("x * 2, x.mean().item()"), {"x": "float32[n, 3]"}, {"n": "0..9"})
    assert result.code == 0, result.error


def manifest_of(export: Export) -> ProgramManifest:
    return export(model("{'n': s, 'x': x, 'mode': 'a', 'c': 3}"), INPUTS, DIMS).manifest


@pytest.mark.parametrize(
    ("result", "problem"),
    [
        ((7.0, torch.ones(1), "a", 3), 'returned 7.0 for "n", the program returns the int'),
        ((True, torch.ones(1), "a", 3), 'returned True for "n", the program returns the int'),
        ((7, 1, "a", 3), 'returned 1 for "x", the program returns the tensor'),
        (
            (7, torch.ones(1), "b", 3),
            "returned 'b' for \"mode\", the program returns the constant a",
        ),
        ((7, torch.ones(1), "a", 4), 'returned 4 for "c", the program returns the constant 3'),
        ((7, torch.ones(1), "a"), "returned 3 values, the program returns 4"),
    ],
)
def test_the_test_compares_numbers_and_constants(
    export: Export, result: tuple[Any, ...], problem: str
) -> None:
    with pytest.raises(DriverError) as caught:
        outputs_of(pytree.tree_leaves(result), manifest_of(export))
    assert str(caught.value) == f"//pkg:m: forward() {problem}"


@pytest.mark.parametrize(
    ("result", "problem"),
    [
        (
            "{'a': [x, Unknown(x)]}",
            'forward() returns a pkg.m.Unknown, which torch does not know, at "a[1]" in its result.'
            "\n  Register the dataclass beside its definition: "
            "torch.export.register_dataclass(Unknown)",
        ),
        (
            "x, torch.float32",
            'forward() returns a torch.dtype, which torch does not know, at "[1]" in its result.\n'
            "  Results are tensors, numbers, strings and None, and lists, tuples, dicts, "
            "NamedTuples and registered dataclasses of them. Leave it out of the result",
        ),
        (
            "{'a': {(1, 2): x}}",
            'forward() returns a dict with the key (1, 2) at "a" in its result. Use strings or '
            "integers as keys.",
        ),
        (
            "x, 2**70",
            'forward() returns the integer 1180591620717411303424 at "[1]" in its result, which '
            "does not fit into 64 bits. Return a float, or leave it out.",
        ),
        ("3", "forward() returns no tensor, so there is nothing to compute"),
    ],
)
def test_results_that_are_refused(export: Export, result: str, problem: str) -> None:
    assert export(model(result), {"x": "float32[n, 3]"}, DIMS).error.startswith(
        f"//pkg:m: {problem}"
    )


def test_stock_pytorch_gets_the_structure(export: Export) -> None:
    exported = export(model("{'n': s, 'l': [x, 'a', 3]}"), {"x": "float32[n, 3]"}, DIMS)
    result = exported.program().module(check_guards=False)(torch.zeros(5, 3))
    assert list(result) == ["n", "l"]
    assert result["n"].dtype == torch.int64 and int(result["n"]) == 5
    assert result["l"][1:] == [None, 3]
    assert (
        json.loads(exported.manifest_path.read_text(encoding="utf-8"))["result"]["kind"] == "dict"
    )
