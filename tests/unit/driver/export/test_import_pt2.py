"""Programs that stock PyTorch has written."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
import torch
from aoti_driver.base.errors import DriverError
from aoti_driver.bindings import results
from aoti_driver.contract import conditions
from aoti_driver.contract.size_expr import Name
from aoti_driver.export import import_pt2
from aoti_driver.process import cli
from aoti_driver.program.loading import load_program
from aoti_driver.program.weights_file import read_weights
from aoti_driver.verify.reference import ProgramReference
from torch.export import Dim

from tests.unit.driver.harness import Result, codegen


class Model(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(4, 4)

    def forward(self, x: torch.Tensor, past: list[torch.Tensor]) -> dict[str, torch.Tensor]:
        return {"logits": self.linear(x) + past[0], "rest": past[1][1:]}


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    n = Dim("n", min=2, max=20)
    half = Dim("half", min=2, max=8)
    arguments = (torch.randn(5, 4), [torch.randn(5, 1), torch.randn(2 * 3 + 1)])
    shapes = {"x": {0: n}, "past": [{0: n}, {0: 2 * half + 1}]}
    program = torch.export.export(Model().eval(), arguments, dynamic_shapes=shapes)
    path = tmp_path / "model.pt2"
    torch.export.save(program, path)
    return path


def run(path: Path, capsys: pytest.CaptureFixture[str], **spec: Any) -> Result:
    folder = path.parent
    document = {"label": "//pkg:m", "name": "m", "inputs": {}, "dynamic_dims": {}, **spec}
    (folder / "spec.json").write_text(json.dumps(document), encoding="utf-8")
    outs = [folder / "out" / n for n in ("graph", "weights", "manifest", "locations")]
    code = cli.main(
        ["import", f"--spec={folder / 'spec.json'}", f"--program={path}"]
        + [f"--out_{o.name}={o}" for o in outs]
    )
    if code:
        assert not any(o.exists() for o in outs)
    else:
        assert json.loads(outs[3].read_text(encoding="utf-8")) == {}
    return Result(code, capsys.readouterr().err, *outs)


def test_dims_and_names(saved: Path, capsys: pytest.CaptureFixture[str]) -> None:
    result = run(saved, capsys)
    manifest = result.manifest
    assert [(d.name, d.min, d.max) for d in manifest.dims] == [("s0", 2, 20), ("s1", 2, 8)]
    assert [(i.name, [str(e) for e in i.shape]) for i in manifest.inputs] == [
        ("x", ["s0", "4"]),
        ("past_0", ["s0", "1"]),
        ("past_1", ["2*s1 + 1"]),
    ]
    assert [(o.name, tuple(map(str, o.shape))) for o in manifest.outputs] == [
        ("logits", ("s0", "4")),
        ("rest", ("2*s1",)),
    ]
    arguments = (torch.randn(7, 4), [torch.randn(7, 1), torch.randn(9)])
    expected = torch.export.load(saved).module()(*arguments)
    actual = torch.utils._pytree.tree_leaves(
        result.program().module(check_guards=False)(*arguments)
    )
    torch.testing.assert_close(actual, list(expected.values()), rtol=0, atol=0)


def test_dims_as_the_rule_names_them(saved: Path, capsys: pytest.CaptureFixture[str]) -> None:
    inputs = {
        "x": "float32[batch, 4] in -1..1",
        "past_0": "float32[batch, 1]",
        "past_1": "float32[2*h + 1]",
    }
    dims = {"batch": "2..20", "h": "2..8"}
    manifest = run(saved, capsys, inputs=inputs, dynamic_dims=dims).manifest
    assert [d.name for d in manifest.dims] == ["batch", "h"]
    assert str(manifest.outputs[1].shape[0]) == "2*h" and manifest.inputs[0].values == (-1, 1)


@pytest.mark.parametrize(
    ("inputs", "dims", "message"),
    [
        (
            {"y": "float32[4]"},
            {},
            'inputs: the program has no input "y". Its inputs: x, past_0, past_1.',
        ),
        ({"x": "float32[5, 4]"}, {}, 'inputs["x"]: dim 0 is 5, the program takes s'),
        ({"x": "int64[5, 4]"}, {}, 'inputs["x"]: the program takes float32['),
        ({"x": "float32[b, 4]"}, {"b": "2..20"}, 'inputs["past_0"]: missing'),
        (
            {"x": "float32[b, 4]", "past_0": "float32[b, 1]", "past_1": "float32[2*h + 1]"},
            {"b": "2..64", "h": "2..8"},
            'dynamic_dims["b"]: the model works only for 2..20, but 2..64 is declared.',
        ),
    ],
)
def test_declarations_that_do_not_fit(
    saved: Path,
    capsys: pytest.CaptureFixture[str],
    inputs: dict[str, str],
    dims: dict[str, str],
    message: str,
) -> None:
    result = run(saved, capsys, inputs=inputs, dynamic_dims=dims)
    assert result.code == 1 and f"//pkg:m: {message}" in result.error


def test_other_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "text.pt2").write_text("nothing")
    torch.jit.save(torch.jit.script(torch.nn.Linear(2, 2)), str(tmp_path / "script.pt2"))
    torch.save({"x": torch.zeros(1)}, tmp_path / "state.pt2")
    for name, message in (
        ("text", "this is not a .pt2 file"),
        ("script", "this is a TorchScript file"),
        ("state", f"torch {torch.__version__} cannot load it"),
    ):
        result = run(tmp_path / f"{name}.pt2", capsys)
        assert result.code == 1 and message in result.error, result.error


def test_an_operator_that_torch_does_not_have(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script = """
import sys, torch
@torch.library.custom_op("import_test::twice", mutates_args=())
def twice(x: torch.Tensor) -> torch.Tensor:
    return x * 2
twice.register_fake(torch.empty_like)
class Twice(torch.nn.Module):
    def forward(self, x):
        return twice(x)
torch.export.save(torch.export.export(Twice(), (torch.ones(3),)), sys.argv[1])
"""
    path = tmp_path / "twice.pt2"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-c", script, str(path)], check=True, env=environment)
    capsys.readouterr()
    with pytest.raises(DriverError) as caught:
        import_pt2.load(str(path), "//pkg:twice")
    assert str(caught.value) == (
        f"//pkg:twice: program twice.pt2: torch {torch.__version__} cannot load it: it calls the "
        "operator import_test.twice.default, which torch does not have. It is a custom operator, "
        "or belongs to another version of torch\n"
        f"  It was written by torch {torch.__version__}.\n"
        f"  If another version of torch wrote it, write it anew with "
        f"{torch.__version__.partition('+')[0]}; if it calls custom operators, give their targets "
        "to custom_ops (docs/custom_ops.md), or export it without them, as docs/recipes.md shows."
    )
    assert capsys.readouterr() == ("", "")


# --- what ep.module() checks, and compiled code must check too ------------------------------------


class Hundred(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.reshape(100, -1).clone() + 1


class Cached(torch.nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor, past: torch.Tensor) -> torch.Tensor:
        return torch.cat([past, x], 1) + y


class First(torch.nn.Module):
    def forward(self, x: torch.Tensor, *, n: int) -> torch.Tensor:
        return x[:n] * n


def save(
    path: Path, model: torch.nn.Module, args: tuple[Any, ...], shapes: Any, **kwargs: Any
) -> Path:
    program = torch.export.export(model.eval(), args, kwargs, dynamic_shapes=shapes)
    torch.export.save(program, path / "model.pt2")
    return path / "model.pt2"


def test_guards_become_conditions(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = save(tmp_path, Hundred(), (torch.randn(2000),), {"x": {0: Dim.DYNAMIC}})
    manifest = run(path, capsys).manifest
    assert [str(g) for g in manifest.guards] == ["s0 % 100 == 0"]
    assert [(d.name, d.min) for d in manifest.dims] == [("s0", 200)]
    named = run(path, capsys, inputs={"x": "float32[n]"}, dynamic_dims={"n": "200..5000"})
    assert [str(g) for g in named.manifest.guards] == ["n % 100 == 0"]


def test_guards_that_nothing_satisfies(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = save(tmp_path, Hundred(), (torch.randn(2000),), {"x": {0: Dim.DYNAMIC}})
    result = run(path, capsys, inputs={"x": "float32[n]"}, dynamic_dims={"n": "201..299"})
    assert result.error.startswith(
        '//pkg:m: the program was exported under the condition "n % 100 == 0", which no size that '
        "is declared meets (n in 201..299). Declare other ranges."
    )


@pytest.mark.parametrize("examples", [True, False])
def test_guards_of_nested_arguments(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], examples: bool
) -> None:
    class Nested(torch.nn.Module):
        def forward(
            self, state: dict[str, list[torch.Tensor]], *args: torch.Tensor, k: torch.Tensor
        ) -> torch.Tensor:
            even = state["h"][1].reshape(2, -1).clone().sum()
            triple = args[1].reshape(3, -1).clone().sum()
            return even + triple + k.reshape(5, -1).clone().sum() + args[0]

    program = torch.export.export(
        Nested(),
        ({"h": [torch.randn(4), torch.randn(10)]}, torch.randn(3), torch.randn(21)),
        {"k": torch.randn(55)},
        dynamic_shapes={
            "state": {"h": [None, {0: Dim.DYNAMIC}]},
            "args": (None, {0: Dim.DYNAMIC}),
            "k": {0: Dim.DYNAMIC},
        },
    )
    if not examples:
        program.example_inputs = None
    torch.export.save(program, tmp_path / "model.pt2")
    manifest = run(tmp_path / "model.pt2", capsys).manifest
    assert sorted(map(str, manifest.guards)) == ["s0 % 2 == 0", "s1 % 3 == 0", "s2 % 5 == 0"]


def test_a_size_that_is_a_sum(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = torch.randn(2, 3), torch.randn(2, 8), torch.randn(2, 5)
    shapes = {"x": {1: Dim.DYNAMIC}, "y": {1: Dim.DYNAMIC}, "past": {1: Dim.DYNAMIC}}
    path = save(tmp_path, Cached(), arguments, shapes)
    manifest = run(path, capsys).manifest
    assert [str(g) for g in manifest.guards] == ["s2 == s0 + s1"]
    assert [str(i.shape[1]) for i in manifest.inputs] == ["s0", "s2", "s1"]
    inputs = {"x": "float32[2, new]", "y": "float32[2, total]", "past": "float32[2, past]"}
    dims = {"new": "2..8", "past": "2..8", "total": "4..16"}
    named = run(path, capsys, inputs=inputs, dynamic_dims=dims).manifest
    assert tuple(map(str, named.guards)) == ("total == new + past",)


def test_dims_that_are_always_equal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    class Sum(torch.nn.Module):
        def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            return x + y

    shapes = {"x": {0: Dim.DYNAMIC}, "y": {0: Dim.DYNAMIC}}
    path = save(tmp_path, Sum(), (torch.randn(20), torch.randn(20)), shapes)
    result = run(
        path,
        capsys,
        inputs={"x": "float32[a]", "y": "float32[b]"},
        dynamic_dims={"a": "2..30", "b": "2..30"},
    )
    assert result.code == 1
    assert '//pkg:m: inputs["y"]: dim 0 is b, but the program takes a there' in result.error


def test_guards_that_nothing_can_check(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = save(tmp_path, Hundred(), (torch.randn(2000),), {"x": {0: Dim.DYNAMIC}})
    with zipfile.ZipFile(path) as archive:
        entries = {i: archive.read(i) for i in archive.namelist()}
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in entries.items():
            if name.endswith("model.json"):
                data = data.replace(b"(L['x'].size()[0] % 100) == 0", b"bool(L['x'].size()[0] & 4)")
            archive.writestr(name, data)
    result = run(path, capsys)
    assert result.code == 1
    assert result.error.startswith(
        "//pkg:m: the program was exported under the guard \"bool(L['x'].size()[0] & 4)\", which a "
        'compiled model can\'t check at run time, because of "bool(s0 & 4)"'
    )


def test_numbers_that_are_sizes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shapes = {"x": {0: Dim.DYNAMIC}, "n": Dim.DYNAMIC}
    path = save(tmp_path, First(), (torch.randn(20),), shapes, n=5)
    manifest = run(path, capsys).manifest
    assert [(i.name, i.dtype, i.shape, i.value) for i in manifest.inputs] == [
        ("x", "float32", (Name("s0"),), None),
        ("n", "int64", (), "s1"),
    ]
    assert [str(g) for g in manifest.guards] == ["s1 <= s0"] and manifest.outputs[0].shape == (
        Name("s1"),
    )
    inputs = {"x": "float32[rows]", "n": "int64[] in 2..20"}
    result = run(path, capsys, inputs=inputs, dynamic_dims={"rows": "2..30"})
    assert [str(g) for g in result.manifest.guards] == ["n <= rows"]
    assert ("n", 2, 20) in [(d.name, d.min, d.max) for d in result.manifest.dims]
    # What aoti_test runs, and the code.
    program = load_program(result.graph, result.manifest, read_weights(result.weights), flat=True)
    reference = ProgramReference(program, result.manifest)
    call = reference.call({"rows": 9, "n": 4}, seed=0)
    assert call.inputs["n"].item() == 4 and call.outputs["output"].shape == (4,)
    torch.testing.assert_close(call.outputs["output"], call.inputs["x"][:4] * 4)
    assert conditions.all_hold(result.manifest.guards, reference.sample_sizes())
    wrapper = codegen(result)
    assert "aoti_torch_item_int64(inputs[1]" in wrapper
    bad = {**inputs, "n": "int64[] in 0..20"}
    (tmp_path / "other").mkdir()
    path = path.rename(tmp_path / "other" / path.name)
    result = run(path, capsys, inputs=bad, dynamic_dims={"rows": "2..30"})
    told = 'inputs["n"]: the values 0..20 are declared, but the program takes only 2..'
    assert told in result.error


# --- files whose metadata and values disagree -----------------------------------------------------


@pytest.mark.parametrize("examples", [True, False])
def test_exported_inside_of_autocast(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], examples: bool
) -> None:
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU()).eval()
    with torch.autocast("cpu", torch.bfloat16):
        program = torch.export.export(model, (torch.randn(3, 4),))
    if not examples:
        program.example_inputs = None
    torch.export.save(program, tmp_path / "model.pt2")
    result = run(tmp_path / "model.pt2", capsys)
    assert result.code == 1
    assert result.error.startswith(
        '//pkg:m: the program says that "linear" (aten.linear.default) in the submodule "0" is '
        "bfloat16[3, 4], but run by PyTorch it is float32[3, 4]: its outputs would not be what it "
        "says.\n  torch.export.export() inside of torch.autocast() writes such files"
    )


def test_the_run_leaves_no_trace(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    class Counter(torch.nn.Module):
        count: torch.Tensor

        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("count", torch.zeros(3))
            self.scale = torch.nn.Parameter(torch.ones(4), requires_grad=False)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.count.add_(1)
            self.scale.mul_(2)
            return x + self.count[0] + self.scale

    path = save(tmp_path, Counter(), (torch.randn(4),), None)
    weights = read_weights(run(path, capsys).weights)
    assert weights["count"].tolist() == [0] * 3 and weights["scale"].tolist() == [1] * 4


def test_views_read_by_absolute_places(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    class Strided(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x.as_strided((2,), (1,), 3) * 2

    path = save(tmp_path, Strided(), (torch.arange(10.0)[3:],), None)
    result = run(path, capsys)
    assert result.code == 1
    assert result.error.startswith(
        '//pkg:m: forward() calls as_strided with a storage offset on the input "x", and the '
        "sample is a view that begins at element 3 of its memory: "
    )
    path = save(tmp_path, Strided(), (torch.arange(10.0),), None)
    assert run(path, capsys).code == 0


class Structured(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> dict[str, Any]:
        batch = x.shape[0]
        numbers = [batch, batch / 2, x.sum().item()]  # torch can't save bools
        return {"numbers": numbers, "rest": (x * 2, None, 3)}


def test_structures_and_numbers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    n = Dim("n", min=2, max=20)
    program = torch.export.export(
        Structured(), (torch.randn(5, 4),), dynamic_shapes={"x": {0: n}}, strict=False
    )
    torch.export.save(program, tmp_path / "model.pt2")
    result = run(tmp_path / "model.pt2", capsys)
    manifest = result.manifest
    assert manifest.result is not None
    assert results.text(manifest.result) == (
        '{"numbers": [numbers_0, numbers_1, numbers_2], "rest": (rest_0, None, 3)}'
    )
    kinds = [output.number for output in manifest.outputs]
    assert kinds == ["int", "float", "float", None]
    codegen(result)
    reference = load_program(result.graph, manifest, read_weights(result.weights), flat=True)
    recorded = ProgramReference(reference, manifest).call({"s0": 9}, seed=0)
    assert recorded.outputs["numbers_0"].item() == 9
    total = recorded.inputs["x"].sum()
    torch.testing.assert_close(recorded.outputs["numbers_2"], total.double())
