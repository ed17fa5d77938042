"""glassllm: the PyTorch module against the package's own NumPy implementation."""

from __future__ import annotations

import os

import glassllm
import pytest
import torch

from models.glassllm.model import GlassLM, build

WEIGHTS = os.environ["GLASSLLM_WEIGHTS"]


@pytest.fixture(scope="module")
def model() -> GlassLM:
    return build(WEIGHTS).eval()


@pytest.mark.parametrize("seq", [1, 2, 37, 128])
def test_logits_agree_with_the_packages(model: GlassLM, seq: int) -> None:
    oracle = glassllm.GlassLM.load(WEIGHTS)
    ids = torch.randint(1024, (1, seq), generator=torch.Generator().manual_seed(seq))
    with torch.no_grad():
        logits = model(ids)
    assert logits.shape == (1, seq, 1024)
    expected = torch.from_numpy(oracle.forward(ids.numpy()).data).float()
    torch.testing.assert_close(logits, expected, rtol=1e-4, atol=1e-4)


def test_greedy_text_agrees_with_the_packages(model: GlassLM) -> None:
    oracle, tokenizer = glassllm.load_pretrained("en")
    prompt = tokenizer.encode("Alice was beginning to")
    expected = [s.token for s in oracle.generate(prompt, n_new=40, greedy=True)]
    ids = list(prompt)
    with torch.no_grad():
        for _ in range(40):
            ids.append(int(model(torch.tensor([ids]))[0, -1].argmax()))
    assert ids[len(prompt) :] == expected
