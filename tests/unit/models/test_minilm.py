"""all-MiniLM-L6-v2: similarities that the model's authors publish, and padding."""

from __future__ import annotations

import os

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor

from models.bert.model import SentenceEncoder

# WordPiece ids of: The weather is lovely today. / It's so sunny outside! / He drove to the stadium.
SENTENCES = [
    [101, 1996, 4633, 2003, 8403, 2651, 1012, 102],
    [101, 2009, 1005, 1055, 2061, 11559, 2648, 999, 102],
    [101, 2002, 5225, 2000, 1996, 3346, 1012, 102],
]
# What the README of sentence-transformers prints for them.
SIMILARITIES = [[1.0, 0.6660, 0.1046], [0.6660, 1.0, 0.1411], [0.1046, 0.1411, 1.0]]


@pytest.fixture(scope="module")
def encoder() -> SentenceEncoder:
    encoder = SentenceEncoder()
    encoder.load_state_dict(load_file(os.environ["MINILM_WEIGHTS"]))  # strict: names are the file's
    return encoder.eval()


def encode(encoder: SentenceEncoder, sentences: list[list[int]], padding: int = 0) -> Tensor:
    length = max(map(len, sentences)) + padding
    ids = torch.tensor([s + [0] * (length - len(s)) for s in sentences])
    mask = torch.tensor([[1] * len(s) + [0] * (length - len(s)) for s in sentences])
    with torch.no_grad():
        vectors: Tensor = encoder(ids, mask)
    return vectors


def test_published_similarities(encoder: SentenceEncoder) -> None:
    vectors = encode(encoder, SENTENCES)
    assert vectors.shape == (3, 384)
    torch.testing.assert_close(vectors @ vectors.T, torch.tensor(SIMILARITIES), rtol=0, atol=1e-4)


def test_batch_and_padding_do_not_matter(encoder: SentenceEncoder) -> None:
    together = encode(encoder, SENTENCES, padding=5)
    alone = torch.cat([encode(encoder, [sentence]) for sentence in SENTENCES])
    torch.testing.assert_close(together, alone, rtol=0, atol=1e-5)


def test_a_row_of_padding_is_zero(encoder: SentenceEncoder) -> None:
    with torch.no_grad():
        vectors = encoder(torch.zeros(2, 4, dtype=torch.int64), torch.tensor([[0] * 4, [1] * 4]))
    assert not vectors[0].any()
    assert float(vectors[1].norm()) == pytest.approx(1.0, abs=1e-5)


def test_the_longest_sentence(encoder: SentenceEncoder) -> None:
    vectors = encode(encoder, [[101, *[2003] * 510, 102]])
    assert float(vectors.norm()) == pytest.approx(1.0, abs=1e-5)
