"""EfficientNet-Lite0: against the implementation that the weights were published with."""

from __future__ import annotations

import os

import pytest
import torch
from efficientnet_lite_pytorch import EfficientNet

from models.efficientnet.model import EfficientNetLite0


@pytest.mark.parametrize("batch", [1, 3])
def test_logits_agree_with_the_published_implementation(batch: int) -> None:
    weights = torch.load(os.environ["EFFICIENTNET_WEIGHTS"], weights_only=True)
    model = EfficientNetLite0()
    model.load_state_dict(weights)  # strict: names are the file's
    oracle = EfficientNet.from_name("efficientnet-lite0")
    oracle.load_state_dict(weights)
    generator = torch.Generator().manual_seed(batch)
    images = torch.rand(batch, 3, 224, 224, generator=generator) * 2 - 1
    with torch.no_grad():
        logits, expected = model.eval()(images), oracle.eval()(images)
    assert logits.shape == (batch, 1000)
    assert float(expected.std()) > 0.1
    torch.testing.assert_close(logits, expected, rtol=1e-4, atol=1e-4)
