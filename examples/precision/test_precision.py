"""The vectors of the two builds point in the same direction, and one reads half as many bytes."""

from __future__ import annotations

import numpy as np

from examples.precision import minilm_bfloat16  # type: ignore[attr-defined]  # generated
from models import minilm  # type: ignore[attr-defined]  # generated


def test_vectors_are_those_of_float32() -> None:
    generator = np.random.default_rng(0)
    ids = generator.integers(0, 30522, (8, 24))
    mask = np.ones_like(ids)
    wide = minilm.load()(input_ids=ids, attention_mask=mask).output
    narrow = minilm_bfloat16.load()(input_ids=ids, attention_mask=mask).output
    assert narrow.dtype == np.float32
    cosines = (wide * narrow).sum(1) / np.linalg.norm(wide, axis=1) / np.linalg.norm(narrow, axis=1)
    assert cosines.min() > 0.999
    assert not np.array_equal(wide, narrow)
