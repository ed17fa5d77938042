"""The vectors of the three builds point in the same direction."""

from __future__ import annotations

from types import ModuleType

import numpy as np
import pytest

from examples.precision import (  # type: ignore[attr-defined]  # generated
    minilm_bfloat16,
    minilm_int8,
)
from models import minilm  # type: ignore[attr-defined]  # generated


@pytest.mark.parametrize(("model", "least"), [(minilm_bfloat16, 0.999), (minilm_int8, 0.98)])
def test_vectors_are_those_of_float32(model: ModuleType, least: float) -> None:
    generator = np.random.default_rng(0)
    ids = generator.integers(0, 30522, (8, 24))
    mask = np.ones_like(ids)
    wide = minilm.load()(input_ids=ids, attention_mask=mask).output
    narrow = model.load()(input_ids=ids, attention_mask=mask).output
    assert narrow.dtype == np.float32
    cosines = (wide * narrow).sum(1) / np.linalg.norm(wide, axis=1) / np.linalg.norm(narrow, axis=1)
    assert cosines.min() > least
    assert not np.array_equal(wide, narrow)
    other = model.load(threads=1)(input_ids=ids, attention_mask=mask).output
    np.testing.assert_array_equal(other, narrow)
