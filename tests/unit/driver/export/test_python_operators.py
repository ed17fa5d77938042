"""Operators that are registered in Python: their bodies become part of the program."""

from __future__ import annotations

import sys
import types
from typing import Any

import pytest
import torch

from tests.unit.driver.harness import BATCH, Export, Result, X, fails, module

_OP = "@torch.library.custom_op('python_op::{name}', mutates_args=())\n"


def _operators(result: Result) -> list[str]:
    graph = result.program().graph_module
    return [
        str(node.target)
        for part in graph.modules()
        for node in getattr(part, "graph", torch.fx.Graph()).nodes
        if node.op == "call_function"
    ]


def _place(source: str, code: str) -> str:
    """Where the code is in a module's source, as errors write it."""
    lines = [line.strip() for line in source.splitlines()]
    return f"pkg/m.py:{1 + lines.index(code)}: {code}"


def _run(result: Result, *args: Any) -> Any:
    return result.program().module()(*args)


_TWICE = (
    _OP.format(name="twice") + "def twice(x: torch.Tensor) -> torch.Tensor:\n    return x * 2\n"
)


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("call", ["twice(x)", "torch.ops.python_op.twice(x)"])
def test_a_body(export: Export, call: str, strict: bool) -> None:
    fake = "twice.register_fake(torch.empty_like)\n"
    result = export(module(f"return {call} + 1") + _TWICE + fake, X, BATCH, strict=strict)
    assert _operators(result) == ["aten.mul.Tensor", "aten.add.Tensor"]
    x = torch.randn(3, 4)
    torch.testing.assert_close(_run(result, x), x * 2 + 1)


@pytest.mark.parametrize("strict", [False, True])
def test_no_fake_is_needed(export: Export, strict: bool) -> None:
    call = "return torch.ops.python_op.twice(x)"
    result = export(module(call) + _TWICE, X, BATCH, strict=strict)
    assert _operators(result) == ["aten.mul.Tensor"]
    assert f'"code": "{call}"' in result.locations.read_text()


def test_two_outputs_sizes_that_vary_and_defaults(export: Export) -> None:
    source = module("a, b = parts(x)\nreturn a, b, x.shape[0] * b") + (
        _OP.format(name="parts")
        + "def parts(x: torch.Tensor, by: float = 0.5) -> tuple[torch.Tensor, torch.Tensor]:\n"
        "    half = x.shape[0] // 2\n"
        "    return x[:half] * by, x[half:].sum(0) / x.shape[0]\n"
    )
    result = export(source, X, BATCH)
    for batch in (2, 5, 64):
        x = torch.randn(batch, 4)
        half = batch // 2
        sums = x[half:].sum(0) / batch
        torch.testing.assert_close(_run(result, x), (x[:half] * 0.5, sums, batch * sums))


def test_an_operator_that_calls_another(export: Export) -> None:
    source = module("return outer(x)") + (
        _TWICE
        + _OP.format(name="outer")
        + "def outer(x: torch.Tensor) -> torch.Tensor:\n    return twice(x) + twice(x + 1)\n"
    )
    result = export(source, X, BATCH)
    assert _operators(result) == ["aten.mul.Tensor", "aten.add.Tensor"] * 2
    x = torch.randn(3, 4)
    torch.testing.assert_close(_run(result, x), 4 * x + 2)


_IMPL = """
library = torch.library.Library("python_op_library", "FRAGMENT")
library.define("{name}(Tensor x, *, int by=3) -> Tensor")
library.impl("{name}", lambda x, by=3: {body}, "{key}")
library.impl("{name}", lambda x, by=3: torch.empty_like(x), "Meta")
"""


@pytest.mark.parametrize("key", ["CPU", "CompositeExplicitAutograd"])
def test_registered_by_library_impl(export: Export, key: str) -> None:
    """Such a body is called by the dispatcher; what it calls is replaced in a second step."""
    name = f"scaled_{key}"
    source = module(f"return torch.ops.python_op_library.{name}(x)") + (
        _TWICE
        + "twice.register_fake(torch.empty_like)\n"
        + _IMPL.format(name=name, body="twice(x) * by", key=key)
    )
    result = export(source, X, BATCH)
    assert _operators(result) == ["aten.mul.Tensor", "aten.mul.Tensor"]
    x = torch.randn(3, 4)
    torch.testing.assert_close(_run(result, x), x * 6)


def test_an_operator_of_transformers(export: Export) -> None:
    """Its own body makes Python numbers of the offsets, so the driver has another one."""
    body = "torch.cat([x[a:b] @ w for a, b, w in zip([0, *offs.tolist()], offs.tolist(), weight)])"
    source = module(
        "return torch.ops.transformers.grouped_mm_fallback(x, self.weight, offs=offs)",
        init="self.register_buffer('weight', torch.randn(3, 4, 5))",
        arguments="x, offs",
    ) + (
        'library = torch.library.Library("transformers", "FRAGMENT")\n'
        "schema = '(Tensor input, Tensor weight, Tensor offs) -> Tensor'\n"
        'library.define("grouped_mm_fallback" + schema)\n'
        f'library.impl("grouped_mm_fallback", lambda x, weight, offs: {body}, "CPU")\n'
        "def samples():\n"
        "    return torch.randn(7, 4), torch.tensor([2, 2, 7], dtype=torch.int32)\n"
    )
    result = export(source, {}, {}, sample_inputs="pkg.m:samples")
    run = result.program().module()
    weight = result.program().state_dict["weight"]
    x = torch.randn(7, 4)
    expected = torch.zeros(7, 5)
    expected[:3], expected[3:6] = x[:3] @ weight[0], x[3:6] @ weight[2]
    found = run(x, torch.tensor([3, 3, 6], dtype=torch.int32))
    torch.testing.assert_close(found, expected)


def test_in_a_branch(export: Export) -> None:
    source = module("return torch.cond(x.sum() > 0, lambda x: twice(x), lambda x: x - 1, (x,))") + (
        _TWICE + "twice.register_fake(torch.empty_like)\n"
    )
    result = export(source, X, BATCH)
    assert "aten.mul.Tensor" in _operators(result)
    assert not [name for name in _operators(result) if "python_op" in name]
    x = torch.ones(3, 4)
    torch.testing.assert_close(_run(result, x), x * 2)


def test_the_second_step_of_a_program_with_state(export: Export) -> None:
    source = module(
        "self.count.add_(1.0)\n"
        "return torch.cond(x.sum() > 0, lambda x: twice(x), lambda x: x - 1, (x,)) + self.count",
        init="self.register_buffer('count', torch.zeros(()))",
    ) + (_TWICE + "twice.register_fake(torch.empty_like)\n")
    result = export(source, X, BATCH)
    assert [c.name for c in result.manifest.constants if c.mutated] == ["count"]
    run = result.program().module()
    assert [float(run(torch.ones(3, 4))[0, 0]) for _ in range(3)] == [3, 4, 5]


def test_the_kernel_for_the_cpu(export: Export) -> None:
    source = module("return twice(x)") + (
        _TWICE + "@twice.register_kernel('cpu')\ndef _(x):\n    return x + x\n"
    )
    assert _operators(export(source, X, BATCH)) == ["aten.add.Tensor"]


_INCREASED = (
    "@torch.library.custom_op('python_op::increased', mutates_args=('x',))\n"
    "def increased(x: torch.Tensor, by: float) -> None:\n    x.add_(by)\n"
)


@pytest.mark.parametrize("strict", [False, True])
def test_it_writes_to_an_argument(export: Export, strict: bool) -> None:
    """To a tensor of forward(), and to a buffer."""
    source = module(
        "y = x.clone()\nincreased = torch.ops.python_op.increased\nincreased(y, 1.5)\n"
        "increased(self.count, 1.0)\nreturn y + self.count",
        init="self.register_buffer('count', torch.zeros(()))",
    )
    result = export(source + _INCREASED, X, BATCH, strict=strict)
    assert not [name for name in _operators(result) if "python_op" in name]
    assert [c.name for c in result.manifest.constants if c.mutated] == ["count"]
    run = result.program().module()
    x = torch.zeros(3, 4)
    assert [float(run(x)[0, 0]) for _ in range(3)] == [2.5, 3.5, 4.5]


def test_it_writes_to_an_argument_in_a_body_of_the_dispatcher(export: Export) -> None:
    source = module("y = x.clone()\nreturn torch.ops.python_op_library.plus(y)") + (
        _INCREASED + _IMPL.format(name="plus", body="(increased(x, 1.0), x * by)[1]", key="CPU")
    )
    error = fails(export, source)
    assert "python_op::increased, which is registered in Python" in error


# --- refusals -------------------------------------------------------------------------------------

_ADVICE = (
    "The body of an operator in Python becomes a part of the program if it computes with PyTorch's "
    "operators alone and does the same for all values of its tensors. Change the body, compute "
    "this part in the program that calls the model, or write the operator in C++ and give it to "
    "custom_ops: docs/custom_ops.md\n"
)


def test_numpy(export: Export) -> None:
    source = module("y = sine(x)\nreturn sine(y) + twice(x)") + (
        _TWICE
        + "import numpy\n"
        + _OP.format(name="sine")
        + "def sine(x: torch.Tensor) -> torch.Tensor:\n"
        "    return torch.from_numpy(numpy.sin(x.numpy()))\n"
        "sine.register_fake(torch.empty_like)\n"
    )
    assert fails(export, source) == (
        "//pkg:m: the model calls operators that aren't PyTorch's own, which compiled code can't "
        "call, on the slim runtime or on libtorch:\n"
        "  python_op::sine, which is registered in Python\n"
        "    used at pkg/m.py:8: y = sine(x)\n"
        "    used at pkg/m.py:9: return sine(y) + twice(x)\n"
        "    its body can't be traced: it computes with NumPy\n"
        f"    at {_place(source, 'return torch.from_numpy(numpy.sin(x.numpy()))')}\n{_ADVICE}"
    )


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("fake", ["", "chosen.register_fake(torch.empty_like)\n"])
def test_a_branch_on_values(export: Export, fake: str, strict: bool) -> None:
    source = module("return torch.ops.python_op.chosen(x)") + (
        _OP.format(name="chosen") + "def chosen(x: torch.Tensor) -> torch.Tensor:\n"
        "    if x.sum() > 0:\n"
        "        return x + 1\n"
        "    return x * 2\n" + fake
    )
    error = fails(export, source, strict=strict)
    assert (
        "  python_op::chosen, which is registered in Python\n"
        "    used at pkg/m.py:8: return torch.ops.python_op.chosen(x)\n"
        "    its body can't be traced: it needs the values of a tensor (torch.where and torch.cond "
        "choose by values within a program)\n"
        f"    at {_place(source, 'if x.sum() > 0:')}\n{_ADVICE}"
    ) in error


def test_memory_for_a_library_of_its_own(export: Export) -> None:
    source = module("return raw(x)") + (
        _OP.format(name="raw") + "def raw(x: torch.Tensor) -> torch.Tensor:\n"
        "    assert x.data_ptr()\n"
        "    return x.clone()\n"
    )
    error = fails(export, source)
    assert "its body can't be traced: it passes the memory of a tensor to code that isn't" in error
    assert f"    at {_place(source, 'assert x.data_ptr()')}\n" in error


def test_sizes_in_a_body_that_another_operator_calls(export: Export) -> None:
    """A condition on sizes that is found after the export is not checked at run time."""
    body = _OP.format(name="sized") + (
        "def sized(x: torch.Tensor) -> torch.Tensor:\n"
        "    return x * 2 if x.shape[0] > 10 else x + 1\n"
        "sized.register_fake(torch.empty_like)\n"
    )
    source = module("return sized(x)") + body
    line, _, code = _place(source, "return x * 2 if x.shape[0] > 10 else x + 1").partition(": ")
    assert f"  {line} in sized\n    {code}\n" in fails(export, source)
    nested = _IMPL.format(name="nested", body="sized(x)", key="CPU")
    error = fails(export, module("return torch.ops.python_op_library.nested(x)") + body + nested)
    assert "python_op::sized, which is registered in Python\n    used at pkg/m.py:8: " in error
    assert "its body can't be traced: it compares sizes that vary" in error


def test_a_kernel_in_cpp(export: Export) -> None:
    """Only the schema is in Python."""
    source = module("return torch.ops.python_op_library.same(x)") + (
        'library = torch.library.Library("python_op_library", "FRAGMENT")\n'
        'library.define("same(Tensor x) -> Tensor")\n'
        "library.impl('same', torch.library.fallthrough_kernel, 'AutogradCPU')\n"
        "library.impl('same', torch.empty_like, 'Meta')\n"
    )
    assert export(source, X, BATCH).code == 1


def test_a_compiled_operator_that_is_not_in_custom_ops(
    export: Export, monkeypatch: pytest.MonkeyPatch
) -> None:
    registration: Any = types.ModuleType("aoti_operator.registration")
    registration.COMPILED = {"python_op::twice": "//ops:net"}
    monkeypatch.setitem(sys.modules, registration.__name__, registration)
    source = module("return twice(x)") + _TWICE + "twice.register_fake(torch.empty_like)\n"
    assert (
        "  python_op::twice, which is registered in Python\n"
        f"    used at {_place(source, 'return twice(x)')}\n"
        "    it is compiled from //ops:net: add its torch_operator target to custom_ops\n"
    ) in fails(export, source)
