"""Operators of programs' own: loaded from a library, or declared by a graph's file."""

from __future__ import annotations

import argparse
import subprocess
from pathlib import Path
from typing import Any

import pytest
import torch
from aoti_driver.base.errors import DriverError
from aoti_driver.program import fakes, graph_file, loading, operators
from torch import Tensor, nn

SCHEMA = "aoti_operators_test::halves(Tensor x, SymInt rows) -> (Tensor, Tensor)"


class Halved(nn.Module):
    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        result: tuple[Tensor, Tensor] = torch.ops.aoti_operators_test.halves(x, x.shape[0])
        return result


def _export() -> torch.export.ExportedProgram:
    operators.declare([SCHEMA])
    fake: Any = torch.library.register_fake
    fake(
        "aoti_operators_test::halves",
        lambda x, rows: (x.new_empty(rows, x.shape[1] // 2), x.new_empty(rows, x.shape[1] // 2)),
        allow_override=True,
    )
    return torch.export.export(
        Halved(), (torch.ones(3, 4),), dynamic_shapes={"x": {0: torch.export.Dim("rows")}}
    )


def test_the_graph_has_the_schemas(tmp_path: Path) -> None:
    ep = _export()
    assert operators.schemas(ep) == [SCHEMA]
    graph_file.save_graph(ep, tmp_path / "graph.json")
    loaded = loading.load_program(tmp_path / "graph.json")
    (node,) = [n for n in loaded.graph.nodes if operators.is_declared(n.target)]
    assert str(node.target._schema) == SCHEMA


def test_a_graph_without_own_operators_does_not_name_any(tmp_path: Path) -> None:
    ep = torch.export.export(nn.ReLU(), (torch.ones(3),))
    graph_file.save_graph(ep, tmp_path / "graph.json")
    assert "operators" not in graph_file.read_document(tmp_path / "graph.json", "it", None)


def test_pytorchs_operators_are_not_own() -> None:
    assert not operators.is_declared(torch.ops.aten.relu.default)
    assert not operators.is_declared("aten::relu")


def _arguments(tmp_path: Path, text: str) -> argparse.Namespace:
    source = tmp_path / "source.py"
    source.write_text(text, encoding="utf-8")
    parser = argparse.ArgumentParser()
    fakes.add_arguments(parser)
    return parser.parse_args(
        [
            f"--source=_main/ops/own_fakes.py={source}",
            "--import_root=_main",
            "--operator_module=_main/ops/own_fakes.py",
        ]
    )


def test_files_with_fake_kernels_are_imported(tmp_path: Path) -> None:
    operators.declare(["aoti_operators_test::imported(Tensor x) -> Tensor"])
    text = """
import torch
@torch.library.register_fake("aoti_operators_test::imported")
def _(x):
    return x.new_empty(7)
"""
    with fakes.imported(_arguments(tmp_path, text)):
        meta = torch.ops.aoti_operators_test.imported(torch.empty(2, device="meta"))
    assert meta.shape == (7,)


def test_an_error_in_a_file_with_fake_kernels(tmp_path: Path) -> None:
    text = "import torch\ntorch.library.register_fake('aoti_operators_test::absent', print)\n"
    arguments = _arguments(tmp_path, text)
    arguments.source[0] = arguments.source[0].replace("own_fakes", "wrong_fakes")
    arguments.operator_module[0] = "_main/ops/wrong_fakes.py"
    with pytest.raises(DriverError) as raised, fakes.imported(arguments):
        pass
    assert str(raised.value).startswith(
        "ops/wrong_fakes.py: the fake kernels of custom_ops can't be registered: RuntimeError: "
        "operator aoti_operators_test::absent does not exist"
    )


def test_what_a_library_says_is_wrong_with_it(tmp_path: Path) -> None:
    source, library = tmp_path / "wrong.c", tmp_path / "libwrong.so"
    text = r'"operator a::b: no\noperator a::c: no\n"'
    source.write_text(f"const char* aoti_operators_problems() {{ return {text}; }}\n")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
    with pytest.raises(DriverError) as raised:
        operators.load([f"//ops:wrong={library}"])
    assert str(raised.value) == (
        "//ops:wrong: its operators can't be registered:\n  operator a::b: no\n  operator a::c: no"
    )


def test_a_library_that_cannot_be_loaded(tmp_path: Path) -> None:
    library = tmp_path / "libbroken.so"
    library.write_text("no ELF", encoding="utf-8")
    with pytest.raises(DriverError, match=r"^//ops:broken: its operators can't be loaded: "):
        operators.load([f"//ops:broken={library}"])
