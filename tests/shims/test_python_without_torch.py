"""Python loads and runs a compiled model where torch is not installed."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from tests.shims import on_slim  # type: ignore[attr-defined]  # generated


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


def test_no_library_of_torch_is_loaded() -> None:
    on_slim.load()
    loaded = {
        Path(line.split()[-1]).name
        for line in Path("/proc/self/maps").read_text(encoding="utf-8").splitlines()
        if "/" in line
    }
    assert [name for name in loaded if "torch" in name or "libc10" in name or "gomp" in name] == []
