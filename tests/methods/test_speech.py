"""Methods in Python whose results are structures and numbers; one of them is forward()."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from tests.methods import speech  # type: ignore[attr-defined]  # generated

AUDIO = np.arange(16, dtype=np.float32).reshape(4, 4) - 6


def test_results() -> None:
    model = speech.load()
    encoded = model.encode(audio=AUDIO)
    assert list(encoded) == ["memory", "loudness", "version"]
    assert encoded["loudness"] == pytest.approx(float(np.abs(AUDIO).mean()))
    assert (encoded["memory"].length, encoded["version"]) == (4, 2)
    logits, (best, top, nothing) = model(tokens=np.array([1, 7]), memory=encoded["memory"].values)
    assert logits.shape == (2, 4) and nothing is None
    np.testing.assert_array_equal(best.values, np.sort(logits[-1])[::-1][:2])
    assert (best.length, top) == (2, float(logits[-1].max()))
    # The same class, whichever method returns it.
    assert type(best) is type(encoded["memory"]) is speech.Span
    assert pickle.loads(pickle.dumps(best)).length == 2


def test_a_call_of_the_model_is_one_of_forward() -> None:
    model = speech.load(num_runners=1, threads=1)
    arguments = (np.array([0]), np.ones((4, 10), np.float32), 1)
    np.testing.assert_array_equal(model(*arguments)[0], model.forward(*arguments)[0])
    assert speech.forward.inputs["k"] == "int"
    with pytest.raises(speech.InputError) as caught:
        model(np.array([0]), np.ones((4, 10), np.float32), k=5)
    assert str(caught.value) == 'speech.forward: input "k": value is 5, must be in 1..4'


def test_load() -> None:
    with pytest.raises(speech.Error) as caught:
        speech.load(num_runners=-1)
    assert caught.value.code == "InvalidArgument"
    with pytest.raises(speech.Error) as caught:
        speech.load(weights="/nowhere")
    assert caught.value.code == "WeightsNotFound" and "/nowhere" in str(caught.value)
