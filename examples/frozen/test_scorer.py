"""The frozen model and its other weights, from Python, and their provenance."""

from __future__ import annotations

import json
import math
from pathlib import Path

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


def test_an_adapter_is_other_weights(tmp_path: Path) -> None:
    """A low-rank update is merged into the weights of a model that is loaded."""
    random = np.random.default_rng(0)
    shapes: dict[str, tuple[int, ...]] = {
        "hidden.bias": (16,),
        "hidden.weight": (16, 8),
        "score.bias": (1,),
        "score.weight": (1, 16),
    }
    tensors = {name: random.normal(size=shape).astype("<f4") for name, shape in shapes.items()}
    a, b = random.normal(size=(2, 8)), random.normal(size=(16, 2))
    tensors["hidden.weight"] += (0.5 * (b @ a)).astype("<f4")
    header, data = {}, b""
    for name, tensor in tensors.items():
        offsets = [len(data), len(data) + tensor.nbytes]
        header[name] = {"dtype": "F32", "shape": tensor.shape, "data_offsets": offsets}
        data += tensor.tobytes()
    text = json.dumps(header).encode()
    path = tmp_path / "tuned.safetensors"
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)

    model = scorer.load()
    model.swap_weights(path)
    (output,) = model(features=FEATURES)
    hidden = np.maximum(FEATURES @ tensors["hidden.weight"].T + tensors["hidden.bias"], 0)
    scores = hidden @ tensors["score.weight"].T + tensors["score.bias"]
    np.testing.assert_allclose(output, 1 / (1 + np.exp(-scores)), rtol=1e-4, atol=1e-6)


def test_provenance() -> None:
    """One program, three libraries: all name the graph that lies in the source tree."""
    modules = (received, scorer, scorer_tuned)
    assert [m.__provenance__["model"].rpartition(":")[2] for m in modules] == [
        "received",
        "scorer",
        "scorer_tuned",
    ]
    assert len({m.__provenance__["graph_sha256"] for m in modules}) == 1
