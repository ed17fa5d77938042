"""A cache that is None in the first call and grows from call to call, against eager PyTorch."""

import pytest
import torch
from torch.utils.dlpack import from_dlpack

from tests.variants import decoder  # type: ignore[attr-defined]  # generated
from tests.variants.decoder_py import Decoder

MODEL = decoder.load()


def test_growing_cache() -> None:
    torch.manual_seed(0)  # as the build does before it makes the weights
    eager = Decoder().eval()
    tokens, past = torch.tensor([[1, 2, 3]]), None
    compiled = None
    for step in range(20):
        assert MODEL.explain(tokens, compiled).variant == ("past" if step else "past_none")
        logits, (keys, values) = MODEL(tokens, compiled)
        with torch.no_grad():
            expected, past = eager(tokens, past)
        torch.testing.assert_close(from_dlpack(logits), expected)
        torch.testing.assert_close(from_dlpack(keys), past[0])
        assert keys.shape == values.shape == (1, 3 + step, 8)
        compiled = keys, values
        tokens = expected[:, -1:].argmax(-1)


def test_a_structure_or_its_parts() -> None:
    tokens, some = torch.tensor([[1]]), torch.ones(1, 4, 8)
    (expected, _) = MODEL(tokens, (some, some))
    for args, kwargs in (
        ((tokens, [some, some]), {}),
        ((tokens,), {"past": (some, some)}),
        ((tokens, some, some), {}),
        ((tokens,), {"past_0": some, "past_1": some}),
    ):
        (logits, _) = MODEL(*args, **kwargs)
        torch.testing.assert_close(from_dlpack(logits), from_dlpack(expected))
    assert MODEL.explain(tokens, past=None).variant == "past_none"


@pytest.mark.parametrize(
    ("past", "message"),
    [
        ([1, 2, 3], 'decoder: "past" has 3 parts, must have 2'),
        ((1,), 'decoder: "past" is a tuple without the part "1"'),
        ({"keys": 1}, 'decoder: "past" is a dict without the part "0"'),
        (7, 'decoder: "past" is a int without the part "0"'),
    ],
)
def test_other_structures(past: object, message: str) -> None:
    with pytest.raises(TypeError) as caught:
        MODEL(torch.tensor([[1]]), past=past)
    assert str(caught.value) == message
    with pytest.raises(TypeError) as caught:
        MODEL(torch.tensor([[1]]), (1, 2), past_1=3)
    assert str(caught.value) == 'decoder: input "past_1" is given twice'


def test_half_a_cache() -> None:
    some = torch.zeros(1, 4, 8)
    refused = MODEL.explain(torch.tensor([[1]]), past_0=some).refused
    assert refused == {
        "past_none": 'input "past_0" is a tensor, must be None',
        "past": 'input "past_1" is None, must be float32[1, past, 8]',
    }
