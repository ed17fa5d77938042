"""SmolLM2: the program with a cache against a plain decoder, and its answers."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from itertools import pairwise

import pytest
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, silu

from models.smollm2.model import (
    CACHE_SHAPE,
    CONTEXT,
    EPSILON,
    HEAD_SIZE,
    LAYERS,
    QUERIES_PER_KV,
    ROPE_BASE,
    Decoder,
    SmolLM2,
    build_decoder,
    decoder_inputs,
    sample_inputs,
)

WEIGHTS = os.environ["SMOLLM2_WEIGHTS"]

# The chat template around "What is the capital of France?", and "The capital of France is Paris.".
QUESTION = [1, 9690, 198, 2683, 359, 253, 5356, 5646, 11173, 3365, 3511, 308, 34519, 28, 7018]
QUESTION += [411, 407, 19712, 8182, 2, 198, 1, 4093, 198, 1780, 314, 260, 3575, 282, 4649, 47, 2]
QUESTION += [198, 1, 520, 9531, 198]
ANSWER = [504, 3575, 282, 4649, 314, 7042, 30, 2]

# "The sea was calm that morning, and the fishermen set out before sunrise. They knew that ..."
PROSE = [504, 3426, 436, 9071, 338, 5738, 28, 284, 260, 24133, 932, 578, 1092, 29780, 30, 1069]
PROSE += [5341, 338, 260, 1450, 655, 288, 6063, 2698, 436, 1584, 281, 260, 1194, 28, 645, 260, 913]
PROSE += [436, 1361, 3122, 284, 260, 4255, 761, 441, 2408, 10176, 288, 6135, 30]


@pytest.fixture(scope="module")
def model() -> Iterator[Decoder]:
    with torch.no_grad():
        yield build_decoder(WEIGHTS)


def empty_cache() -> Tensor:
    return torch.zeros(CACHE_SHAPE)


def step(model: Decoder, tokens: list[int], past: int, cache: Tensor) -> Tensor:
    total = past + len(tokens)
    logits: Tensor = model(
        torch.tensor([tokens]),
        torch.ones(1, total, dtype=torch.int64),
        torch.arange(past, total),
        cache,
    )
    return logits[0]


def reference(w: dict[str, Tensor], tokens: list[int]) -> Tensor:
    """Logits at every position by the textbook: no cache, repeated heads, complex rotation."""
    n = len(tokens)

    def norm(x: Tensor, name: str) -> Tensor:
        return x / (x.square().mean(-1, keepdim=True) + EPSILON).sqrt() * w[f"{name}.weight"]

    power = torch.arange(0, HEAD_SIZE, 2, dtype=torch.float64) / HEAD_SIZE
    angle = torch.arange(n, dtype=torch.float64)[:, None] * ROPE_BASE**-power
    turn = torch.polar(torch.ones_like(angle), angle).to(torch.complex64)

    def rotate(x: Tensor) -> Tensor:
        pairs = torch.view_as_complex(x.reshape(*x.shape[:-1], -1, 2))
        return torch.view_as_real(pairs * turn).flatten(-2)

    causal = torch.full((n, n), -math.inf).triu(1)
    x = w["token_embd.weight"][torch.tensor(tokens)]
    for layer in range(LAYERS):
        block = f"blk.{layer}"
        h = norm(x, f"{block}.attn_norm")
        q, k, v = (
            (h @ w[f"{block}.attn_{name}.weight"].T).view(n, -1, HEAD_SIZE).transpose(0, 1)
            for name in "qkv"
        )
        k, v = (t.repeat_interleave(QUERIES_PER_KV, dim=0) for t in (rotate(k), v))
        scores = rotate(q) @ k.transpose(1, 2) / math.sqrt(HEAD_SIZE) + causal
        y = (scores.softmax(-1) @ v).transpose(0, 1).flatten(1)
        x = x + y @ w[f"{block}.attn_output.weight"].T
        h = norm(x, f"{block}.ffn_norm")
        gate = silu(h @ w[f"{block}.ffn_gate.weight"].T)
        x = x + (gate * (h @ w[f"{block}.ffn_up.weight"].T)) @ w[f"{block}.ffn_down.weight"].T
    return norm(x, "output_norm") @ w["token_embd.weight"].T


def test_steps_agree_with_a_decoder_without_cache(model: Decoder) -> None:
    expected = reference(model.state_dict(), PROSE)
    cache = empty_cache()
    past = 0
    for tokens in (PROSE[:5], PROSE[5:6], PROSE[6:7], PROSE[7:20], PROSE[20:]):
        logits = step(model, tokens, past, cache)
        past += len(tokens)
        torch.testing.assert_close(logits, expected[past - 1], rtol=1e-4, atol=1e-3)


def test_the_model_with_a_cache_of_its_own(model: Decoder) -> None:
    own = SmolLM2()
    own.load_state_dict(model.state_dict(), assign=True)
    cache = empty_cache()
    for seq, total in ((7, 7), (1, 8), (3, 11)):
        arguments = sample_inputs(seq, total)
        torch.testing.assert_close(own(*arguments), model(*arguments, cache), rtol=0, atol=0)
        assert torch.equal(own.past_key_values, cache)


def test_it_is_a_language_model_of_english(model: Decoder) -> None:
    """Perplexity: 13.8 on this text; 49,152 would be a guess, a wrong rotation gives 44."""
    cache = empty_cache()
    loss = 0.0
    for past, (token, following) in enumerate(pairwise(PROSE)):
        loss += float(cross_entropy(step(model, [token], past, cache), torch.tensor(following)))
    assert 12 < math.exp(loss / (len(PROSE) - 1)) < 16


def test_it_answers_a_question(model: Decoder) -> None:
    cache = empty_cache()
    answer: list[int] = []
    tokens, past = QUESTION, 0
    for _ in ANSWER:
        answer.append(int(step(model, tokens, past, cache).argmax()))
        past += len(tokens)
        tokens = answer[-1:]
    assert answer == ANSWER


def test_the_cache_behind_the_last_token_is_neither_read_nor_written(model: Decoder) -> None:
    clean = empty_cache()
    dirty = torch.full(CACHE_SHAPE, math.nan)
    for tokens, past in ((PROSE[:6], 0), (PROSE[6:7], 6)):
        torch.testing.assert_close(
            step(model, tokens, past, dirty), step(model, tokens, past, clean), rtol=0, atol=0
        )
    assert torch.equal(dirty[:, :, :7], clean[:, :, :7])
    assert dirty[:, :, 7:].isnan().all()
    assert (clean[:, :, :7] != 0).any(-1).all()


def test_padding_is_not_seen(model: Decoder) -> None:
    """Two tokens of padding in front: their keys and values, whatever they are, do not matter."""

    def run(padding: int) -> Tensor:
        cache = empty_cache()
        tokens = torch.tensor([[padding, padding, *PROSE[:4]]])
        mask = torch.tensor([[0, 0, 1, 1, 1, 1]])
        with torch.no_grad():
            logits: Tensor = model(tokens, mask, torch.arange(6), cache)
        return logits[0]

    torch.testing.assert_close(run(17), run(1000), rtol=0, atol=0)


def test_the_last_place_of_the_context(model: Decoder) -> None:
    """It has no neighbour on its right, and its rotation is the table's last row."""
    arguments = decoder_inputs(seq=1, total=CONTEXT)
    logits = model(*arguments)
    assert logits.isfinite().all()
    assert (arguments[3][:, :, CONTEXT - 1] != 0).any(-1).all()


@pytest.mark.parametrize(("seq", "total"), [(1, 1), (3, 3), (1, 2048), (5, 9)])
def test_sample_inputs(seq: int, total: int) -> None:
    ids, mask, position, cache = decoder_inputs(seq, total)
    assert (ids.shape, mask.shape) == ((1, seq), (1, total))
    assert position.tolist() == list(range(total - seq, total))
    assert cache.shape == CACHE_SHAPE
    assert (cache[:, :, : total - seq] != 0).any(-1).all()
    assert not cache[:, :, total - seq :].any()


def test_sample_inputs_keep_the_new_tokens_inside_of_the_total() -> None:
    ids, mask, position = sample_inputs(seq=8, total=3)
    assert (ids.shape[1], mask.shape[1], position.tolist()) == (3, 3, [0, 1, 2])
