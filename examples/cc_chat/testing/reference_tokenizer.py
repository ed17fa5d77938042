"""SmolLM2's tokenizer, put together from the GGUF's tables with Hugging Face's tokenizers library.

That library is the one that trained and published this tokenizer, so it is the reference. The pre-
tokenizer is the one of the model's own tokenizer.json, which a GGUF only names ("smollm"): digits
stand alone, then GPT-2's byte-level split.
"""

from __future__ import annotations

from pathlib import Path

from gguf import GGUFReader
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

CONTROL, USER_DEFINED = 3, 4


def load(path: Path) -> Tokenizer:
    """The tokenizer of a GGUF file."""
    fields = GGUFReader(path).fields
    texts: list[str] = fields["tokenizer.ggml.tokens"].contents()
    types: list[int] = fields["tokenizer.ggml.token_type"].contents()
    merges: list[str] = fields["tokenizer.ggml.merges"].contents()
    tokenizer = Tokenizer(
        models.BPE(
            vocab={text: token for token, text in enumerate(texts)},
            merges=[(left, right) for left, right in (merge.split(" ") for merge in merges)],
        )
    )
    tokenizer.add_special_tokens(
        [text for text, kind in zip(texts, types, strict=True) if kind in (CONTROL, USER_DEFINED)]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer
