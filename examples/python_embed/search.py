"""Semantic search: finds the one of a few sentences that is nearest in meaning to a question.

    ./bazelw run //examples/python_embed:search -- "How do I mend a flat tyre?"

The sentences become vectors by //models:minilm. It runs as compiled code: nothing imports torch.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from python.runfiles import runfiles
from tokenizers import Tokenizer

from models import minilm  # type: ignore[attr-defined]  # generated

SENTENCES = (
    "To repair a punctured bicycle tube, roughen the rubber, apply glue and press the patch on.",
    "Bread rises because yeast turns sugar into carbon dioxide.",
    "The tides follow the moon, whose gravity pulls at the sea.",
    "A firewall decides which network packets may pass.",
    "Cats sleep for twelve to sixteen hours a day.",
    "The orchestra tunes to the oboe's A before a concert.",
    "Interest rates rose after the central bank warned of inflation.",
    "Photosynthesis stores the energy of sunlight in sugar.",
)

MAX_TOKENS = 256  # what the model was trained for


class Match(NamedTuple):
    """A sentence, and how near it is: the cosine of the angle between the two vectors."""

    score: float
    sentence: str


class SemanticSearch:
    """Sentences to search in."""

    def __init__(self, sentences: Sequence[str], tokenizer_file: str) -> None:
        self._model = minilm.load()
        self._tokenizer = Tokenizer.from_file(tokenizer_file)
        self._tokenizer.enable_truncation(MAX_TOKENS)
        self._tokenizer.enable_padding()
        self._sentences = list(sentences)
        self._vectors = self.embed(self._sentences)

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """One row of length one per text."""
        encodings = self._tokenizer.encode_batch(list(texts))
        vectors: NDArray[np.float32] = self._model(
            input_ids=np.array([encoding.ids for encoding in encodings]),
            attention_mask=np.array([encoding.attention_mask for encoding in encodings]),
        ).output
        return vectors

    def nearest(self, question: str, count: int = 3) -> list[Match]:
        """The sentences nearest to the question, the nearest one first."""
        scores = self._vectors @ self.embed([question])[0]
        order = np.argsort(-scores)[:count]
        return [Match(float(scores[i]), self._sentences[i]) for i in order]


def tokenizer_file() -> str:
    """Where Bazel put the model's tokenizer."""
    path = runfiles.Create().Rlocation("minilm/tokenizer.json")
    assert path, "tokenizer.json is not in the runfiles"
    return str(path)


def main() -> None:
    """Answers the question on the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("question")
    arguments = parser.parse_args()
    for match in SemanticSearch(SENTENCES, tokenizer_file()).nearest(arguments.question):
        print(f"{match.score:.3f}  {match.sentence}")


if __name__ == "__main__":
    main()
