"""Objects of custom classes in a program: their fake classes, and what the graph's file has."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import pytest
import torch
from aoti_driver.base.errors import DriverError
from aoti_driver.program import fakes, graph_file, loading, objects, operators
from torch import Tensor, nn

CLASS = "aoti_objects_test::Table"
SCHEMA = f"{CLASS}.look(Tensor state, str object, Tensor x) -> Tensor"
FIELDS = [
    ("values", torch.ones(3, 5, dtype=torch.float64)),
    ("width", 7),
    ("scale", float("inf")),
    ("words", ["a", ""]),
    ("more", [torch.zeros(2)]),
]
FAKES = f"""
import torch

@torch._library.register_fake_class("{CLASS}")
class FakeTable:
    def __init__(self, **fields):
        self.fields = fields
    @classmethod
    def __obj_unflatten__(cls, state):
        return cls(**dict(state))
    def look(self, x):
        assert self.fields["words"] == ["a", ""] and self.fields["scale"] == float("inf")
        more = self.fields["more"][0]
        values = self.fields["values"]
        return x.new_empty(x.shape[0], self.fields["width"], *more.shape, dtype=values.dtype)
"""


class Looking(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("table", torch.arange(9, dtype=torch.uint8))

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = torch.ops.aoti_objects_test.Table.look(self.table, "table", x)
        return result


def _imported(tmp_path: Path, libraries: list[str]) -> Any:
    source = tmp_path / "source.py"
    source.write_text(FAKES, encoding="utf-8")
    module = f"_main/objects/fakes_{tmp_path.name}.py"
    return fakes.imported(
        argparse.Namespace(
            source=[f"{module}={source}"],
            import_root=["_main"],
            operator_module=[module],
            triton_module=[],
            operators=libraries,
            operator_program=[],
        )
    )


def test_a_fake_class_without_its_class(tmp_path: Path) -> None:
    """Code is generated without the library that has the class."""
    with _imported(tmp_path, []):
        assert objects.fake_class(CLASS).__name__ == "FakeTable"


def test_the_graph_has_what_fake_classes_need(tmp_path: Path) -> None:
    operators.declare([SCHEMA])
    with _imported(tmp_path, []):
        objects.know(objects.describe("table", CLASS, FIELDS))
        ep = torch.export.export(
            Looking(), (torch.ones(3),), dynamic_shapes={"x": {0: torch.export.Dim("rows")}}
        )
        (call,) = [n for n in ep.graph.nodes if operators.is_declared(n.target)]
        assert call.meta["val"].shape[1:] == (7, 2)
        assert call.meta["val"].dtype == torch.float64
        first, second = tmp_path / "first.json", tmp_path / "second.json"
        graph_file.save_graph(ep, first)
        loaded = loading.load_program(first)
        graph_file.save_graph(loaded, second)
        assert first.read_bytes() == second.read_bytes()
        (document,) = graph_file.read_document(first, "it", None)["objects"]
        assert document["name"] == "table"
        assert document["fields"][0] == ["values", {"dtype": "float64", "shape": [3, 5]}]


def test_a_program_without_objects_has_no_list_of_them(tmp_path: Path) -> None:
    ep = torch.export.export(nn.ReLU(), (torch.ones(3),))
    graph_file.save_graph(ep, tmp_path / "graph.json")
    assert "objects" not in graph_file.read_document(tmp_path / "graph.json", "it", None)


def test_code_that_is_generated_without_a_fake_class() -> None:
    found = objects.describe("table", "aoti_objects_test::Absent", [("width", 7)])
    with pytest.raises(DriverError) as raised:
        found.fake()
    assert str(raised.value).startswith(
        "the class aoti_objects_test::Absent has no fake class, which says what its methods "
        'return. Register one with @torch._library.register_fake_class("aoti_objects_test::Absent")'
    )
