"""Continuous training: a frozen program is tuned, and a model that runs takes the new weights."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import torch

from examples.frozen import scorer  # type: ignore[attr-defined]  # generated
from examples.frozen.finetune import examples, finetune

PROGRAM = Path(os.environ["PROGRAM"])


def hits(features: torch.Tensor, wanted: torch.Tensor, model: scorer.Model) -> float:
    (scores,) = model(features.numpy())
    return float(((scores.reshape(-1, 1) > 0.5) == wanted.numpy().astype(bool)).mean())


def test_a_running_model_takes_tuned_weights(tmp_path: Path) -> None:
    torch.manual_seed(1)
    features, wanted = examples(64)
    model = scorer.load()
    before = hits(features, wanted, model)
    tuned = tmp_path / "tuned.safetensors"
    assert finetune(PROGRAM, tuned) < 0.2
    assert hits(features, wanted, model) == before
    model.swap_weights(tuned)
    assert hits(features, wanted, model) > max(before, 0.9)


def test_the_same_as_the_tuned_module(tmp_path: Path) -> None:
    tuned = tmp_path / "tuned.safetensors"
    finetune(PROGRAM, tuned, steps=3)
    program = torch.export.load(PROGRAM)
    untuned = program.module()
    features, _ = examples(64)
    with torch.no_grad():
        (first,) = scorer.load()(features.numpy())
        np.testing.assert_allclose(first, untuned(features).numpy(), rtol=1e-5)
        (second,) = scorer.load(weights=tuned)(features.numpy())
        assert not np.allclose(first, second, rtol=1e-3)
