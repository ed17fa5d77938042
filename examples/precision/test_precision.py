"""The vectors of the three builds point in the same direction."""

from __future__ import annotations

import os
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from examples.precision import (  # type: ignore[attr-defined]  # generated
    minilm_bfloat16,
    minilm_int8,
)
from models import minilm  # type: ignore[attr-defined]  # generated

IDS = np.random.default_rng(0).integers(0, 30522, (8, 24))
MASK = np.ones_like(IDS)


def cosines(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    sizes = np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1)
    return np.asarray((a * b).sum(1) / sizes)


@pytest.mark.parametrize(("model", "least"), [(minilm_bfloat16, 0.999), (minilm_int8, 0.98)])
def test_vectors_are_those_of_float32(model: ModuleType, least: float) -> None:
    wide = minilm.load()(input_ids=IDS, attention_mask=MASK).output
    narrow = model.load()(input_ids=IDS, attention_mask=MASK).output
    assert narrow.dtype == np.float32
    assert cosines(wide, narrow).min() > least
    assert not np.array_equal(wide, narrow)
    other = model.load(threads=1)(input_ids=IDS, attention_mask=MASK).output
    np.testing.assert_array_equal(other, narrow)


def as_int8(name: str, weight: torch.Tensor) -> dict[str, torch.Tensor]:
    """As docs/precision.md has it."""
    scales = weight.abs().amax(1).clamp(min=1e-30) / 127
    return {name: (weight / scales[:, None]).round().to(torch.int8), name + "_scales": scales}


def narrowed(model: ModuleType, tensors: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """The tensors of a float32 program in the dtypes of `model`'s program."""
    if model is minilm_bfloat16:
        return {
            name: t.bfloat16() if t.ndim == 2 and t.dtype == torch.float32 else t
            for name, t in tensors.items()
        }
    stored = load_file(os.environ["INT8_WEIGHTS"])
    result: dict[str, torch.Tensor] = {}
    for name, tensor in tensors.items():
        is_int8 = stored[name].dtype == torch.int8
        result |= as_int8(name, tensor) if is_int8 else {name: tensor}
    return result


@pytest.mark.parametrize(("model", "least"), [(minilm_bfloat16, 0.999), (minilm_int8, 0.98)])
def test_swapped_weights(tmp_path: Path, model: ModuleType, least: float) -> None:
    """Other weights, converted as docs/precision.md says, act as they do in float32."""
    torch.manual_seed(0)
    tensors = load_file(os.environ["FLOAT32_WEIGHTS"])
    for tensor in tensors.values():
        if tensor.ndim == 2 and tensor.is_floating_point():
            tensor += 0.3 * tensor.std() * torch.randn_like(tensor)
    wide_path, narrow_path = tmp_path / "wide.safetensors", tmp_path / "narrow.safetensors"
    save_file(tensors, wide_path)
    save_file(narrowed(model, tensors), narrow_path)
    wide = minilm.load(weights=wide_path)(input_ids=IDS, attention_mask=MASK).output
    loaded = model.load()
    before = loaded(input_ids=IDS, attention_mask=MASK).output
    loaded.swap_weights(narrow_path)
    after = loaded(input_ids=IDS, attention_mask=MASK).output
    assert cosines(wide, after).min() > least
    assert cosines(wide, before).max() < least
    other = model.load(weights=narrow_path)(input_ids=IDS, attention_mask=MASK).output
    np.testing.assert_array_equal(other, after)
    # A matrix in float32 is refused, and the model keeps its weights.
    with pytest.raises(model.Error, match="float32"):
        loaded.swap_weights(wide_path)
    np.testing.assert_array_equal(loaded(input_ids=IDS, attention_mask=MASK).output, after)
    # The same numbers as the build's give the build's results.
    save_file(narrowed(model, load_file(os.environ["FLOAT32_WEIGHTS"])), narrow_path)
    loaded.swap_weights(narrow_path)
    np.testing.assert_array_equal(loaded(input_ids=IDS, attention_mask=MASK).output, before)
