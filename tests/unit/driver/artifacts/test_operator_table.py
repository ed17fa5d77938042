"""The table of a model's operators, and the list in the source tree."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
from aoti_driver.artifacts import operator_lock, operator_table
from aoti_driver.contract.code_parts import Codegen, Shim
from aoti_driver.contract.manifest import LibraryManifest, ProgramManifest
from aoti_driver.contract.manifest_file import to_json
from aoti_driver.contract.source_locations import Location
from aoti_driver.process import cli
from aoti_driver.program import operator_calls

_FLOAT, _INT = 7, 5


def _node(name: str, target: str, *results: Any, graph: Any = None) -> dict[str, Any]:
    inputs = [{"arg": {"as_graph": {"name": "g", "graph": graph}}, "name": ""}] if graph else []
    outputs = [r if isinstance(r, dict) else {"as_tensor": {"name": r}} for r in results]
    return {"name": name, "target": f"torch.ops.{target}", "inputs": inputs, "outputs": outputs}


def _graph(nodes: list[dict[str, Any]], **dtypes: int) -> dict[str, Any]:
    return {"nodes": nodes, "tensor_values": {n: {"dtype": d} for n, d in dtypes.items()}}


def _document() -> dict[str, Any]:
    branch = _graph([_node("sin", "aten.sin.default", "sin")], sin=_FLOAT)
    nodes = [
        _node("sym_size", "aten.sym_size.int", {"as_sym_int": {"as_name": "sym_size"}}),
        {**_node("mul_1", "x"), "target": "_operator.mul"},
        _node("linear", "aten.linear.default", "linear"),
        _node("linear_1", "aten.linear.default", "linear_1"),
        _node("linear_2", "aten.linear.default", "linear_2"),
        _node("check", "aten._assert_tensor_metadata.default"),
        _node("topk", "aten.topk.default", "values", "indices"),
        _node("chunk", "aten.chunk.default", {"as_tensors": [{"name": "a"}, {"name": "b"}]}),
        _node("item", "aten.item.default", {"as_sym_int": {"as_name": "item"}}),
        _node("mul", "aten.mul.Tensor", "mul"),
        _node("mul_2", "aten.mul.Tensor", "mul_2"),
        _node("cond", "higher_order.cond", "cond", graph=branch),
        _node("roll", "mine.roll.default", "roll"),
    ]
    names = ("linear", "linear_1", "linear_2", "values", "a", "b", "mul", "cond", "roll")
    graph = _graph(nodes, **dict.fromkeys(names, _FLOAT), indices=_INT, mul_2=_INT)
    return {"program": {"graph_module": {"graph": graph}}}


_PROGRAM = ProgramManifest(
    label="//pkg:m",
    name="m",
    torch_version="2.13.0+cpu",
    strict=False,
    dims=(),
    inputs=(),
    outputs=(),
    constants=(),
    graph_sha256="0" * 64,
)
_SHIMS = (
    Shim("aoti_torch_cpu_mm_out", ("aten.linear.default",), ("linear", "linear_1")),
    Shim("aoti_torch_cpu_topk", ("aten.topk.default",), ("topk",)),
    Shim("aoti_torch_get_dtype"),
    Shim("mine::roll", ("mine.roll.default",), ("roll",)),
)
_CODEGEN = Codegen("m", "cpu", "x86-64-v3", {}, _SHIMS, ())


@pytest.fixture
def graph(tmp_path: Path) -> Path:
    path = tmp_path / "graph.json"
    path.write_text(json.dumps(_document()))
    return path


def test_the_table(graph: Path, tmp_path: Path) -> None:
    library = LibraryManifest(_PROGRAM, _CODEGEN, "libtorch")
    (tmp_path / "library.json").write_text(to_json(library))
    (tmp_path / "functions.txt").write_text("aoti_torch_cpu_mm_out\naoti_torch_get_dtype\n")
    (tmp_path / "dtypes.txt").write_text("")
    lines = {f"linear{n}": Location("pkg/m.py", 7, "") for n in ("", "_1")}
    lines["linear_2"] = Location("pkg/m.py", 9, "")
    lines |= {f"mul{n}": Location("pkg/m.py", 10 + i, "") for i, n in enumerate(("", "_2"))}
    locations = {name: dataclasses.asdict(line) for name, line in lines.items()}
    (tmp_path / "lines.json").write_text(json.dumps(locations))
    out = tmp_path / "out.txt"
    code = cli.main(
        [
            "ops",
            f"--graph={graph}",
            f"--manifest={tmp_path / 'library.json'}",
            f"--locations={tmp_path / 'lines.json'}",
            f"--functions={tmp_path / 'functions.txt'}",
            f"--dtypes={tmp_path / 'dtypes.txt'}",
            f"--out={out}",
        ]
    )
    assert code == 0
    assert [" ".join(line.split()) for line in out.read_text().splitlines()] == [
        "//pkg:m: 8 operators in 11 calls, torch 2.13.0, x86-64-v3, runtime libtorch",
        "",
        "operator result calls cpu source",
        "aten.chunk.default float32 1 generated",
        "aten.item.default number 1 generated",
        "aten.linear.default float32 3 generated (1), libtorch aoti_torch_cpu_mm_out (2) "
        "pkg/m.py:7, pkg/m.py:9",
        "aten.mul.Tensor float32 1 generated pkg/m.py:10",
        "aten.mul.Tensor int64 1 generated pkg/m.py:11",
        "aten.sin.default float32 1 generated",
        "aten.topk.default float32, int64 1 libtorch aoti_torch_cpu_topk (slim has none)",
        "higher_order.cond float32 1 generated",
        "mine.roll.default float32 1 custom op mine::roll",
        "",
        "generated: in a kernel that the build writes for this model; views and checks have no "
        "code.",
        "The other entries are functions that the generated code calls.",
    ]


def test_many_lines_of_the_source(graph: Path) -> None:
    calls = [operator_calls.OperatorCall(f"n{i}", "aten.mul.Tensor", "float32") for i in range(9)]
    lines = {f"n{i}": Location("pkg/m.py", i, "") for i in range(9)}
    library = LibraryManifest(_PROGRAM, _CODEGEN, "slim")
    text = operator_table.render(library, calls, lines, set())
    assert "pkg/m.py:0, pkg/m.py:1, pkg/m.py:2 and 6 more lines\n" in text


# --- the list in the source tree ------------------------------------------------------------------


@dataclasses.dataclass
class Model:
    folder: Path
    graph: Path

    def run(self, command: str, *flags: str) -> int:
        manifest = self.folder / "program.json"
        manifest.write_text(to_json(_PROGRAM))
        return cli.main(
            [
                command,
                "--label=//pkg:m",
                "--update=//pkg:m.ops.update",
                "--path=pkg/m.ops.txt",
                "--name=",
                f"--graph={self.graph}",
                f"--manifest={manifest}",
                *flags,
            ]
        )

    def update(self, *flags: str) -> int:
        return self.run(
            "ops_update", "--package=pkg", f"--workspace={self.folder / 'workspace'}", *flags
        )

    @property
    def lock(self) -> Path:
        return self.folder / "workspace" / "pkg" / "m.ops.txt"

    def change(self, before: str, after: str) -> None:
        text = self.lock.read_text()
        assert before in text
        self.lock.write_text(text.replace(before, after))


@pytest.fixture
def model(tmp_path: Path, graph: Path) -> Model:
    (tmp_path / "workspace" / "pkg").mkdir(parents=True)
    return Model(tmp_path, graph)


def test_the_list(model: Model, capsys: pytest.CaptureFixture[str]) -> None:
    assert model.update() == 0
    assert capsys.readouterr().out == "//pkg:m.ops.update: pkg/m.ops.txt: 9 lines, written\n"
    assert model.lock.read_text() == (
        "# The operators of //pkg:m, written by: bazel run //pkg:m.ops.update\n"
        "# torch 2.13.0\n"
        "aten.chunk.default  float32  1\n"
        "aten.item.default  number  1\n"
        "aten.linear.default  float32  3\n"
        "aten.mul.Tensor  float32  1\n"
        "aten.mul.Tensor  int64  1\n"
        "aten.sin.default  float32  1\n"
        "aten.topk.default  float32, int64  1\n"
        "higher_order.cond  float32  1\n"
        "mine.roll.default  float32  1\n"
    )
    assert model.run("ops_diff", f"--lock={model.lock}") == 0
    assert "the operators are those of pkg/m.ops.txt" in capsys.readouterr().out
    assert model.update() == 0
    assert capsys.readouterr().out == "//pkg:m.ops.update: pkg/m.ops.txt: as it was\n"


def test_a_change(model: Model, capsys: pytest.CaptureFixture[str]) -> None:
    model.update()
    model.change("aten.sin.default  float32  1", "aten.cos.default  float32  1")
    model.change("aten.linear.default  float32  3", "aten.linear.default  float32  2")
    model.change("aten.mul.Tensor  int64  1\n", "")
    capsys.readouterr()
    assert model.run("ops_diff", f"--lock={model.lock}") == 1
    assert capsys.readouterr().err == (
        "//pkg:m: the operators are no longer those of pkg/m.ops.txt (-list, +program):\n"
        "  -aten.cos.default  float32  1\n"
        "  -aten.linear.default  float32  2\n"
        "  +aten.linear.default  float32  3\n"
        "  +aten.mul.Tensor  int64  1\n"
        "  +aten.sin.default  float32  1\n"
        "If the change is wanted: bazel run //pkg:m.ops.update, and commit what it writes. `bazel "
        "run //pkg:m.ops` prints the lines of the source that call each operator.\n"
    )
    assert model.update() == 0
    assert model.run("ops_diff", f"--lock={model.lock}") == 0


def test_another_torch(model: Model, capsys: pytest.CaptureFixture[str]) -> None:
    """With the same operators it is no change."""
    model.update()
    model.change("# torch 2.13.0", "# torch 2.12.1")
    assert model.run("ops_diff", f"--lock={model.lock}") == 0
    model.change("aten.mul.Tensor  int64  1\n", "")
    assert model.run("ops_diff", f"--lock={model.lock}") == 1
    error = capsys.readouterr().err
    assert "The list was written with torch 2.12.1, and this is torch 2.13.0.\n" in error


def test_lines_of_the_source_are_not_in_it(model: Model) -> None:
    """Nor what depends on the names of nodes."""
    model.update()
    before = model.lock.read_text()
    document = json.loads(model.graph.read_text())
    for node in document["program"]["graph_module"]["graph"]["nodes"]:
        node["name"] += "_7"
    model.graph.write_text(json.dumps(document))
    model.update()
    assert model.lock.read_text() == before


def test_methods(model: Model) -> None:
    again = ("--name=encode", f"--graph={model.graph}", f"--manifest={model.folder}/program.json")
    assert model.update(*again) == 0
    assert "\n[encode]\naten.chunk.default  float32  1\n" in model.lock.read_text()
    locked, _ = operator_lock.parse(model.lock.read_text(), "m.ops.txt", "")
    assert locked["encode", "aten.linear.default", "float32"] == 3
    lines = operator_lock.differences(locked, {})
    assert "-[encode] aten.linear.default  float32  3" in lines


def test_no_list(model: Model, capsys: pytest.CaptureFixture[str]) -> None:
    assert model.run("ops_diff") == 1
    assert capsys.readouterr().err == (
        "//pkg:m: ops_lock: there is no file pkg/m.ops.txt. Write it: bazel run "
        "//pkg:m.ops.update, and commit it.\n"
    )


def test_a_damaged_list(model: Model, capsys: pytest.CaptureFixture[str]) -> None:
    model.update()
    model.change("aten.sin.default  float32  1", "<<<<<<< HEAD")
    assert model.run("ops_diff", f"--lock={model.lock}") == 1
    assert capsys.readouterr().err == (
        'pkg/m.ops.txt:8: "<<<<<<< HEAD" is no line of a list of operators, such as '
        '"aten.mul.Tensor  float32  2". Write the file anew: bazel run //pkg:m.ops.update\n'
    )


def test_not_by_bazel_run(model: Model, capsys: pytest.CaptureFixture[str]) -> None:
    assert model.run("ops_update", "--package=pkg") == 1
    assert "only `bazel run` says where that is: bazel run //pkg:m.ops" in capsys.readouterr().err
    assert model.update("--repository=other+") == 1
    assert "belongs to another module (other+)" in capsys.readouterr().err
