"""The decompositions attribute: sets, operators that are replaced or kept, and bad entries."""

from __future__ import annotations

import pytest
import torch
from aoti_driver.base.errors import DriverError
from aoti_driver.export.decompositions import chosen, decompose

aten = torch.ops.aten


class _Model(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.nn.functional.gelu(torch.nn.functional.silu(self.linear(x)))
        return torch.nn.functional.softmax(y, -1)


@pytest.fixture(scope="module")
def program() -> torch.export.ExportedProgram:
    return torch.export.export(_Model(), (torch.randn(2, 4),))


def _operators(program: torch.export.ExportedProgram, *names: str) -> set[str]:
    graph = decompose(program, names, "//pkg:m").graph
    return {str(node.target) for node in graph.nodes if node.op == "call_function"}


def test_sets(program: torch.export.ExportedProgram) -> None:
    whole = {"aten.linear.default", "aten.silu.default", "aten.gelu.default", "aten.softmax.int"}
    assert _operators(program) == _operators(program, "none") == whole
    core = _operators(program, "core_aten")
    assert {"aten.addmm.default", "aten.gelu.default", "aten._softmax.default"} <= core
    assert not core & {"aten.linear.default", "aten.silu.default", "aten.softmax.int"}
    inductor = _operators(program, "inductor")
    assert "aten.erf.default" in inductor and "aten.exp.default" in inductor
    assert not inductor & {"aten.gelu.default", "aten._softmax.default"}


def test_operators_of_a_set_are_kept(program: torch.export.ExportedProgram) -> None:
    core = _operators(program, "core_aten")
    assert _operators(program, "core_aten", "-aten.silu") - core == {"aten.silu.default"}
    assert _operators(program, "core_aten", "-aten.linear.default") - core == {
        "aten.linear.default"
    }


@pytest.mark.parametrize("name", ["aten.gelu", "+aten.gelu", "+aten.gelu.default"])
def test_operators_are_replaced(program: torch.export.ExportedProgram, name: str) -> None:
    found = _operators(program, name)
    assert "aten.erf.default" in found and "aten.gelu.default" not in found
    assert "aten.silu.default" in found
    more = _operators(program, "core_aten", name, "-aten.silu")
    assert "aten.erf.default" in more and "aten.silu.default" in more


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (
            ["aten.geluu"],
            '"aten.geluu" is no operator of PyTorch and no set (did you mean "aten.gelu"?). Give '
            'sets ("core_aten", "inductor", "none") and operators, such as "aten.gelu", '
            '"-aten.silu.default".',
        ),
        (
            ["core_atn"],
            '"core_atn" is no operator of PyTorch and no set (did you mean "core_aten"?). Give ',
        ),
        (
            ["+aten.convolution"],
            '"+aten.convolution": torch has no decomposition of aten.convolution, so programs call '
            "it as it is: remove the entry.",
        ),
        (
            ["core_aten", "-aten.silu", "+aten.silu.default"],
            '"+aten.silu.default" replaces aten.silu.default, and "-aten.silu" keeps it: remove '
            "one of them.",
        ),
        (["none", "core_aten"], '"none" together with "core_aten": remove one of them.'),
        (
            ["-aten.silu"],
            '"-aten.silu" keeps an operator that nothing replaces (no set is given): remove it.',
        ),
        (
            ["core_aten", "-aten.gelu"],
            '"-aten.gelu" keeps an operator that nothing replaces ("core_aten"): remove it.',
        ),
        (["-core_aten"], '"-core_aten": a set has no sign. Give "core_aten".'),
        ([""], '"" is no operator of PyTorch and no set. Give '),
        (["-"], '"-" is no operator of PyTorch and no set. Give '),
    ],
)
def test_bad_entries(names: list[str], message: str) -> None:
    with pytest.raises(DriverError) as error:
        chosen(names, "//pkg:m: decompositions")
    assert str(error.value).startswith(f"//pkg:m: decompositions: {message}")
