"""Programs that stock torch wrote."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from aoti_driver import cli
from torch.export import Dim

from tests.unit.driver.harness import Result


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
    document = {"label": "//pkg:m", "name": "m", **spec}
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
    assert [(o.name, o.shape) for o in manifest.outputs] == [
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
    assert manifest.outputs[1].shape == ("2*h",) and manifest.inputs[0].values == (-1, 1)


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
            'dynamic_dims["b"]: the model works for 2..20 only, declared is 2..64.',
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
        ("text", "this is no .pt2 file"),
        ("script", "this is a TorchScript file"),
        ("state", f"torch {torch.__version__} cannot load it"),
    ):
        result = run(tmp_path / f"{name}.pt2", capsys)
        assert result.code == 1 and message in result.error, result.error
