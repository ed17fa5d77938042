"""The nearest sentences are the expected ones, and torch isn't needed to find them."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from examples.python_embed import search


@pytest.fixture(name="finder", scope="module")
def _finder() -> search.SemanticSearch:
    return search.SemanticSearch(search.SENTENCES, search.tokenizer_file())


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("How do I mend a flat tyre?", "bicycle tube"),
        ("Why does dough get bigger?", "yeast"),
        ("What causes high and low water at the coast?", "moon"),
        ("protecting a computer from attackers", "firewall"),
        ("How long does my pet rest?", "Cats"),
        ("classical music performance", "orchestra"),
        ("economic news", "central bank"),
        ("How do plants live on light?", "Photosynthesis"),
    ],
)
def test_finds_what_is_meant(finder: search.SemanticSearch, question: str, expected: str) -> None:
    matches = finder.nearest(question)
    assert len(matches) == 3
    assert expected in matches[0].sentence, matches
    assert matches[0].score > matches[1].score + 0.05


def test_vectors(finder: search.SemanticSearch) -> None:
    vectors = finder.embed(["one", "a much longer sentence about something else", "one"])
    assert vectors.shape == (3, 384)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    # Padding beside a longer sentence changes nothing.
    np.testing.assert_allclose(vectors[0], vectors[2], atol=1e-6)
    np.testing.assert_allclose(vectors[0], finder.embed(["one"])[0], atol=1e-5)


def test_torch_is_not_imported(finder: search.SemanticSearch) -> None:
    finder.nearest("anything")
    assert "torch" not in sys.modules
