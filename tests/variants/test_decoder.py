"""A cache that is None in the first call and grows from call to call, against eager PyTorch."""

import torch
from torch.utils.dlpack import from_dlpack

from tests.variants import decoder  # type: ignore[attr-defined]  # generated
from tests.variants.decoder_py import Decoder

MODEL = decoder.load()


def test_growing_cache() -> None:
    torch.manual_seed(0)  # as the build does before it makes the weights
    eager = Decoder().eval()
    tokens, past = torch.tensor([[1, 2, 3]]), None
    compiled: dict[str, object] = {}
    for step in range(20):
        assert MODEL.explain(tokens, **compiled).variant == ("past" if step else "past_none")
        logits, (keys, values) = MODEL(tokens, **compiled)
        with torch.no_grad():
            expected, past = eager(tokens, past)
        torch.testing.assert_close(from_dlpack(logits), expected)
        torch.testing.assert_close(from_dlpack(keys), past[0])
        assert keys.shape == values.shape == (1, 3 + step, 8)
        compiled = {"past_0": keys, "past_1": values}
        tokens = expected[:, -1:].argmax(-1)


def test_half_a_cache() -> None:
    some = torch.zeros(1, 4, 8)
    refused = MODEL.explain(torch.tensor([[1]]), past_0=some).refused
    assert refused == {
        "past_none": 'input "past_0" is a tensor, must be None',
        "past": 'input "past_1" is None, must be float32[1, past, 8]',
    }
