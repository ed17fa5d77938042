"""Comparing a compiled model with PyTorch: points, tolerances, state, and what a failure says."""

from __future__ import annotations

import argparse
import dataclasses
import json
import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from aoti_driver.base.errors import DriverError
from aoti_driver.contract.code_parts import Codegen
from aoti_driver.contract.manifest import LibraryManifest, ProgramManifest
from aoti_driver.contract.manifest_file import read_manifest, to_json
from aoti_driver.contract.program_parts import Dim, Input, Output
from aoti_driver.contract.size_expr import Name, Number
from aoti_driver.verify import verify
from aoti_driver.verify.compare import DEFAULT_TOLERANCES, OutputReport, compare, table
from aoti_driver.verify.points import points

from tests.unit.driver.inductor import harness

_MODEL = """
import torch

class Counter(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("count", torch.zeros(()))
        self.weight = torch.nn.Parameter(torch.ones(3))

    def forward(self, x, cache):
        self.count.add_(1)
        cache.add_(1)
        return x * self.weight + self.count
"""

Verified = Callable[..., str]

# Plays the compiled model: what it returns is what the expression says.
_REPLAY = """\
#!{python}
import sys
sys.path[:0] = {path!r}
from aoti_driver.program import weights_file
flags = dict(a[2:].split("=", 1) for a in sys.argv[1:])
cases = weights_file.read_weights(flags["in"])
out = {{}}
count = 0
for number in range(len(cases) // 2):
    x, cache = cases[f"{{number}}/x"], cases[f"{{number}}/cache"]
    count += 1
    {statement}
    out[f"{{number}}/result"] = result
    out[f"{{number}}/cache"] = cache + 1
weights_file.write_weights(flags["out"], out)
"""


_SPEC = {"max_points": 16, "rtol": None, "atol": None}


@pytest.fixture
def run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Verified:
    """Verifies the counter model against a stand-in that executes ``statement`` in each call."""

    def verified(statement: str, reference: str = "eager", **spec: float) -> str:
        (tmp_path / "m.py").write_text(_MODEL, encoding="utf-8")
        namespace: dict[str, type[torch.nn.Module]] = {}
        exec(_MODEL, namespace)
        batch = torch.export.Dim("batch", min=1, max=9)
        args = (torch.randn(5, 3), torch.zeros(2))
        shapes = {"x": {0: batch}, "cache": None}
        harness.freeze(tmp_path / "frozen", namespace["Counter"](), args, shapes=shapes)
        frozen = tmp_path / "frozen"
        program = read_manifest(frozen / "manifest.json", ProgramManifest)
        two, three = (Number(n) for n in (2, 3))
        program = dataclasses.replace(
            program,
            dims=(Dim("batch", 1, 9),),
            inputs=(
                Input("x", "x", "float32", (Name("batch"), three), (three, Number(1))),
                Input("cache", "cache", "float32", (two,), (Number(1),), mutated=True),
            ),
            outputs=(Output("result", "", "float32", (Name("batch"), three)),),
        )
        library = LibraryManifest(program, Codegen("m", "cpu", harness.ISA, {}, (), ()), "slim")
        (frozen / "manifest.json").write_text(to_json(library), encoding="utf-8")
        replay = tmp_path / "replay"
        script = _REPLAY.format(python=sys.executable, path=sys.path, statement=statement)
        replay.write_text(script, encoding="utf-8")
        replay.chmod(0o755)
        export: dict[str, Any] = {
            "label": "//pkg:model",
            "name": "model",
            "entry_point": "m:Counter",
            "inputs": {"x": "float32[batch, 3]", "cache": "float32[2]"},
            "sample_inputs": None,
            "dynamic_dims": {"batch": "1..9"},
            "strict": False,
            "decompositions": [],
            "method": None,
        }
        parser = argparse.ArgumentParser()
        verify.add_arguments(parser)
        monkeypatch.setattr(sys, "path", list(sys.path))
        sys.modules.pop("m", None)
        verify.run(
            parser.parse_args(
                [
                    f"--spec={json.dumps({**_SPEC, **spec, 'export': export})}",
                    f"--graph={frozen / 'graph.json'}",
                    f"--weights={frozen / 'weights.safetensors'}",
                    f"--manifest={frozen / 'manifest.json'}",
                    f"--replay={replay}",
                    f"--reference={reference}",
                    f"--source=_main/m.py={tmp_path / 'm.py'}",
                    "--import_root=_main",
                ]
            )
        )
        return capsys.readouterr().out

    return verified


@pytest.mark.parametrize("reference", ["eager", "program"])
def test_a_model_that_is_right(run: Verified, reference: str) -> None:
    text = run("result = x + count", reference)
    assert "ok   result (float32" in text and "ok   cache (float32" in text
    for size in (1, 9):
        assert f"\n    batch = {size}\n" in text


def test_a_wrong_end_of_the_range(run: Verified) -> None:
    with pytest.raises(DriverError) as e:
        run("result = x + count + (0.5 if len(x) == 9 else 0)")
    assert '"result": call 4 (batch = 9): 27 of 27 elements differ' in str(e.value)
    assert "the largest error is 0.5 at [" in str(e.value)
    assert "batch = 1)" not in str(e.value)


def test_state_that_stands_still(run: Verified) -> None:
    with pytest.raises(DriverError, match=r"call 1 .*15 of 15 elements differ"):
        run("result = x + 1")


def test_wrong_shape_and_crash(run: Verified) -> None:
    with pytest.raises(DriverError, match=r"call 0 .*is float32\[4, 3\], expected float32\[5, 3\]"):
        run("result = (x + count)[: max(len(x) - 1, 1)].clone()")
    with pytest.raises(
        DriverError, match=r"(?s)the compiled model failed \(exit 3\).*no such cache"
    ):
        run("print('no such cache', file=sys.stderr); sys.exit(3)")


def test_tolerances_of_the_user(run: Verified) -> None:
    with pytest.raises(DriverError, match="rtol 1e-09, atol 1e-09"):
        run("result = x + count + 1e-5", rtol=1e-9, atol=1e-9)
    assert "ok   result" in run("result = x + count + 1e-5")


def _compared(got: torch.Tensor, expected: torch.Tensor) -> OutputReport:
    report = OutputReport("y", expected.dtype)
    compare(report, got, expected, "call 0")
    return report


def test_nan_and_infinity() -> None:
    values = torch.tensor([1.0, math.nan, math.inf, -math.inf])
    assert not _compared(values.clone(), values).failures
    for i in range(4):
        other = values.clone()
        other[i] = 2.0 if i else math.nan
        report = _compared(other, values)
        assert report.failures and f"at [{i}]" in report.failures[0]


def test_integers_are_exact() -> None:
    big = torch.tensor([2**60, 7])
    assert not _compared(big.clone(), big).failures
    assert _compared(big + torch.tensor([1, 0]), big).failures
    assert _compared(torch.tensor([True]), torch.tensor([False])).failures


def test_scale_and_report() -> None:
    expected = torch.full((100,), 50.0)
    expected[3] = 0.0
    got = expected.clone()
    got[3] = 2e-3  # small against the other elements
    got[7] = 50.001
    report = _compared(got, expected)
    assert not report.failures
    text = table([report])
    assert "largest absolute error: 0.002 at [3] (" in text and "call 0" in text


def test_floats_are_as_accurate_as_the_tensors_they_come_from() -> None:
    expected = torch.tensor(0.5, dtype=torch.float64)
    report = OutputReport("y", expected.dtype, defaults=DEFAULT_TOLERANCES[torch.float32])
    compare(report, expected + 1e-5, expected, "call 0")
    assert not report.failures
    assert _compared(expected + 1e-5, expected).failures
    compare(report, expected + 1e-2, expected, "call 1")
    assert len(report.failures) == 1


def test_empty_and_scalar_outputs() -> None:
    assert not _compared(torch.empty(0, 3), torch.empty(0, 3)).failures
    assert "at []" in _compared(torch.tensor(1.0), torch.tensor(2.0)).failures[0]


def test_points_cover_the_ends() -> None:
    ranges = {"batch": (1, 64), "seq": (2, 512)}
    chosen = points(ranges, {"batch": 7, "seq": 31}, 16)
    assert 10 <= len(chosen) <= 12
    for expected in (
        {"batch": 7, "seq": 31},
        {"batch": 1, "seq": 2},
        {"batch": 64, "seq": 512},
        {"batch": 1, "seq": 31},
        {"batch": 7, "seq": 512},
        {"batch": 63, "seq": 511},
    ):
        assert expected in chosen
    assert all(1 <= p["batch"] <= 64 and 2 <= p["seq"] <= 512 for p in chosen)
    assert points(ranges, {"batch": 7, "seq": 31}, 3) == chosen[:3]
    assert points({}, {}, 16) == [{}]
