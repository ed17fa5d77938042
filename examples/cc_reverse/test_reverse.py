"""The methods in Python: state and weights in common, and errors with the method's name."""

from __future__ import annotations

import ast
from pathlib import Path

import numpy as np
import pytest

from examples.cc_reverse import reverser  # type: ignore[attr-defined]  # generated
from examples.cc_reverse.reverse import reverse


@pytest.mark.parametrize("digits", ["1234", "7", "9005"])
def test_reverses(digits: str) -> None:
    assert reverse(reverser.load(), digits) == digits[::-1]


def test_state_is_of_one_loaded_model() -> None:
    model, other = reverser.load(), reverser.load(num_runners=1)
    memory = model.encode(np.array([[3, 4]])).output
    steps = [each.decode(memory).output.argmax() for each in (other, model, model)]
    assert steps == [4, 4, 3]


def test_signatures() -> None:
    assert reverser.encode.inputs == {"digits": "int64[1, n]"}
    assert reverser.encode.outputs == {"output": "float32[1, n, 80]"}
    assert reverser.decode.dims == {"n": (1, 64)}
    assert reverser.decode.__provenance__["model"] == "//examples/cc_reverse:reverser_decode"
    assert reverser.Model.decode.__doc__.startswith("decode(memory)\n")
    assert type(reverser.load().encode(np.array([[3]]))) is reverser.EncodeOutputs


def test_errors() -> None:
    model = reverser.load()
    with pytest.raises(reverser.InputError) as caught:
        model.encode(digits=np.array([[12]]))
    assert str(caught.value).startswith('reverser.encode: input "digits": ')
    with pytest.raises(reverser.InputError) as caught:
        model.decode(memory=np.zeros((1, 65, 80), np.float32))
    assert str(caught.value) == (
        'reverser.decode: input "memory": dim 1 (n) is 65, must be in 1..64'
    )


def test_the_stub() -> None:
    text = Path(reverser.__file__).with_suffix(".pyi").read_text(encoding="utf-8")
    ast.parse(text)
    assert "    def decode(self, memory: TensorLike) -> DecodeOutputs:\n" in text
