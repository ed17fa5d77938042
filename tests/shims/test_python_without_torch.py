"""Python loads and runs a compiled model where torch is not installed."""

from __future__ import annotations

import importlib.util
import pickle
from pathlib import Path

import numpy as np
import pytest

from tests.shims import on_slim, sampler, structured  # type: ignore[attr-defined]  # generated


def test_torch_is_not_here() -> None:
    assert importlib.util.find_spec("torch") is None


def test_runs() -> None:
    out = on_slim.load()(x=np.ones((2, 8), np.float32))
    scores = np.from_dlpack(out.output)
    assert scores.shape == (2, 3)
    assert scores.sum(-1) == pytest.approx([1.0, 1.0])
    # Same rows, same scores, and not all alike.
    assert (scores[0] == scores[1]).all()
    assert np.ptp(scores[0]) > 0.01


ROW = np.arange(16, dtype=np.float32)[None]


def test_numbers() -> None:
    model = sampler.load()
    assert sampler.inputs == {
        "x": "float32[batch, 16]",
        "k": "int",
        "temperature": "float",
        "shift": "int",
    }
    for temperature in (2, 0.5, np.float32(0.5), np.array(1.5)):
        out = model(ROW, k=np.int64(3), temperature=temperature)
        likely = np.exp(ROW[0] / float(temperature))
        np.testing.assert_allclose(out.output_0[0], (likely / likely.sum())[:3], rtol=1e-5)
        np.testing.assert_allclose(out.output_1[0], np.arange(3) * float(temperature))
    np.testing.assert_array_equal(model(x=ROW, k=2).output_1, model(ROW, 2, 1.0).output_1)
    np.testing.assert_array_equal(model(ROW, 2, shift=-3).output_1, [[13, 14]])


class _Broken:
    def __index__(self) -> int:
        raise RuntimeError("no index")


@pytest.mark.parametrize(
    ("numbers", "problem"),
    [
        ({}, '"k": not given, must be int'),
        ({"k": 0}, '"k": value is 0, must be in 1..16'),
        ({"k": 2.0}, '"k": got float, must be an int'),
        ({"k": "2"}, '"k": got str, must be an int'),
        ({"k": 2**63}, '"k": value is 9223372036854775808, which does not fit into 64 bits'),
        ({"k": -(2**63)}, '"k": value is -9223372036854775808, must be in 1..16'),
        ({"k": _Broken()}, '"k": _Broken: __index__() raised RuntimeError: no index'),
        ({"k": 1, "shift": -4}, '"shift": value is -4, must be in -3..3'),
        ({"k": 1, "temperature": "1"}, '"temperature": got str, must be a float'),
        ({"k": 1, "temperature": None}, '"temperature": got NoneType, must be a float'),
        ({"k": 1, "temperature": 2.5}, '"temperature": value is 2.5, must be in 0.1..2'),
        ({"k": 1, "temperature": float("nan")}, '"temperature": value is nan, must be in 0.1..2'),
    ],
)
def test_wrong_numbers(numbers: dict[str, object], problem: str) -> None:
    with pytest.raises(sampler.InputError) as caught:
        sampler.load()(ROW, **numbers)
    assert str(caught.value) == f"sampler: input {problem}"


@pytest.mark.parametrize("batch", [1, 9])
def test_structure_of_results(batch: int) -> None:
    x = np.arange(batch * 4, dtype=np.float32).reshape(batch, 4)
    out = structured.load()(x, k=3)
    assert list(out) == [
        *("logits", "cache", "loss", "points", "mean", "many", "positive", "mode", "classes"),
        "nothing",
    ]
    assert type(out) is dict and type(out["cache"]) is list and type(out["cache"][1]) is tuple
    np.testing.assert_array_equal(out["logits"], x * 2)
    np.testing.assert_array_equal(out["cache"][0], x + 1)
    assert out["cache"][1][0] == x.sum() and out["cache"][1][1] is None
    first, last = out["points"]
    np.testing.assert_array_equal(first.x, x[0])
    np.testing.assert_array_equal(last.x, x[-1])
    numbers = [out["loss"].count, first.weight, last.weight, out["mean"]]
    assert numbers == [batch * 3, batch / 2, 0.25, float(x.mean())]
    assert [type(number) for number in numbers] == [int, float, float, float]
    assert out["many"] is (batch > 8) and out["positive"] is False
    assert (out["mode"], out["classes"], out["nothing"]) == ("last", 4, None)
    loss = out["loss"]
    assert repr(loss) == f"Loss(value={loss.value!r}, gradient=None, count={batch * 3})"
    assert type(first) is type(last) is structured.Point
    assert pickle.loads(pickle.dumps(out))["loss"].count == batch * 3
    assert structured.outputs["mean"] == "float64[]"


def test_no_library_of_torch_is_loaded() -> None:
    on_slim.load()
    loaded = {
        Path(line.split()[-1]).name
        for line in Path("/proc/self/maps").read_text(encoding="utf-8").splitlines()
        if "/" in line
    }
    assert [name for name in loaded if "torch" in name or "libc10" in name or "gomp" in name] == []
