"""Reverses digits: one method encodes them, the other gives one digit in each step."""

from __future__ import annotations

import sys

import numpy as np

from examples.cc_reverse import reverser  # type: ignore[attr-defined]  # generated


def reverse(model: reverser.Model, text: str) -> str:
    digits = np.array([[int(digit) for digit in text]])
    memory = model.encode(digits=digits).output
    # The memory is passed on as it is; the number of the step is the model's state.
    return "".join(str(model.decode(memory=memory).output.argmax()) for _ in text)


if __name__ == "__main__":
    print(reverse(reverser.load(), sys.argv[1]))
