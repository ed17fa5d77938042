"""The frozen model and its other weights, from Python, and their provenance."""

from __future__ import annotations

import math

import numpy as np

from examples.frozen import (  # type: ignore[attr-defined]  # generated
    received,
    scorer,
    scorer_tuned,
)

FEATURES = np.linspace(-1, 1, 24, dtype=np.float32).reshape(3, 8)


def by_hand(scale: float) -> list[float]:
    """The scores for the weights of make_weights.py, without PyTorch."""

    def weights(*shape: int) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
        count = math.prod(shape)
        return (scale * ((7 * np.arange(count)) % 11 - 5) / 16).reshape(shape)

    hidden = np.maximum(FEATURES @ weights(16, 8).T + weights(16), 0)
    scores = hidden @ weights(1, 16).T + weights(1)
    return [float(score) for score in (1 / (1 + np.exp(-scores))).ravel()]


def test_frozen() -> None:
    (output,) = scorer.load()(features=FEATURES)
    np.testing.assert_allclose(output.ravel(), by_hand(1), rtol=1e-5)


def test_without_the_source() -> None:
    (output,) = received.load()(features=FEATURES)
    np.testing.assert_allclose(output.ravel(), by_hand(1), rtol=1e-5)


def test_other_weights() -> None:
    (output,) = scorer_tuned.load()(features=FEATURES)
    np.testing.assert_allclose(output.ravel(), by_hand(0.5), rtol=1e-5)


def test_provenance() -> None:
    """One program, three libraries: all name the graph that lies in the source tree."""
    modules = (received, scorer, scorer_tuned)
    assert [m.__provenance__["model"].rpartition(":")[2] for m in modules] == [
        "received",
        "scorer",
        "scorer_tuned",
    ]
    assert len({m.__provenance__["graph_sha256"] for m in modules}) == 1
