"""All arguments of a signature, in every combination, against eager PyTorch."""

import itertools

import pytest
import torch
from torch.utils.dlpack import from_dlpack

from tests.variants import attender  # type: ignore[attr-defined]  # generated
from tests.variants.attender_py import Attender

MODEL = attender.load()
TOKENS = torch.arange(12).view(2, 6)
MASK = torch.arange(12).view(2, 6) % 3 != 2


@pytest.mark.parametrize(
    "masked, causal, mode", itertools.product([False, True], [False, True], ["mean", "max"])
)
@pytest.mark.parametrize("temperature, k", [(0.1, 1), (1.5, 8)])
def test_against_eager(masked: bool, causal: bool, mode: str, temperature: float, k: int) -> None:
    arguments = {
        "mask": MASK if masked else None,
        "temperature": temperature,
        "causal": causal,
        "mode": mode,
        "k": k,
    }
    expected = Attender()(TOKENS, **arguments)
    for actual, wanted in zip(MODEL(TOKENS, **arguments), expected, strict=True):
        torch.testing.assert_close(from_dlpack(actual), wanted)


def test_defaults_are_those_of_forward() -> None:
    for actual, wanted in zip(MODEL(TOKENS), Attender()(TOKENS), strict=True):
        torch.testing.assert_close(from_dlpack(actual), wanted)


def test_positions_and_refusals() -> None:
    largest, _ = MODEL(TOKENS, MASK, 0.5, False, "max", 2)
    expected, _ = Attender()(TOKENS, MASK, 0.5, False, "max", 2)
    torch.testing.assert_close(from_dlpack(largest), expected)
    for wrong in ({"k": 9}, {"temperature": 0.0}, {"mode": "sum"}):
        with pytest.raises(attender.InputError) as caught:
            MODEL(TOKENS, **wrong)
        assert caught.value.code == "NoVariant"
    assert 'input "mode" is "sum", must be "max"' in str(caught.value)
