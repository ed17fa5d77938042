"""Adapters in Python: what they compute, what is refused, and files that name their program."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from examples.adapters import scorer  # type: ignore[attr-defined]  # generated
from examples.adapters.make_adapter import adapter

FEATURES = np.random.default_rng(0).normal(size=(5, 8)).astype(np.float32)
PROGRAM = "rules_aoti.program"


@pytest.mark.parametrize("rank", [0, 1, 2, 4])
def test_an_adapter_adds_a_low_rank_update(tmp_path: Path, rank: int) -> None:
    path = tmp_path / "adapter.safetensors"
    tensors = adapter(rank)
    save_file(tensors, path)
    plain = scorer.load()
    expected = plain(FEATURES).output + FEATURES @ tensors["layer.down"].T @ tensors["layer.up"].T
    adapted = scorer.load(adapter=path)
    np.testing.assert_allclose(adapted(FEATURES).output, expected, rtol=1e-4, atol=1e-5)
    plain.swap_weights(adapter=path)
    np.testing.assert_array_equal(plain(FEATURES).output, adapted(FEATURES).output)
    plain.swap_weights()
    adapted.swap_weights(None)
    np.testing.assert_array_equal(plain(FEATURES).output, adapted(FEATURES).output)


def test_an_adapter_that_does_not_fit(tmp_path: Path) -> None:
    path = tmp_path / "adapter.safetensors"
    save_file({"layer.down": np.zeros((3, 8), np.float32)}, path)
    with pytest.raises(scorer.Error) as caught:
        scorer.load(adapter=path)
    assert caught.value.code == "WeightsMismatch"
    assert str(caught.value) == (
        f"scorer: adapter {path} does not fit //examples/adapters:scorer; 1 tensors differ:\n"
        '  wrong: "layer.down" is float32[3, 8], must be float32[4, 8]'
    )
    with pytest.raises(scorer.Error) as caught:
        scorer.load(adapter="")
    assert str(caught.value) == (
        "scorer: adapter is '', must be the path of a safetensors file, or None for none"
    )


def test_a_file_may_name_its_program(tmp_path: Path) -> None:
    assert scorer.__program__ == scorer.__provenance__["graph_sha256"]
    path = tmp_path / "adapter.safetensors"
    save_file(adapter(2), path, metadata={PROGRAM: scorer.__program__})
    model = scorer.load(adapter=path)
    before = model(FEATURES).output
    save_file(adapter(4), path, metadata={PROGRAM: "0" * 64})
    with pytest.raises(scorer.Error) as caught:
        model.swap_weights(adapter=path)
    assert f"was made for the program {'0' * 64}, but this program of" in str(caught.value)
    np.testing.assert_array_equal(model(FEATURES).output, before)
