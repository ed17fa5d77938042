"""How architectures of the transformers package are built: two narrow layers each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import nn

from tests.survey.optional_packages import declare_torchvision
from tests.survey.registry import BATCH, Sample, indices

VOCABULARY, LENGTH = 99, 12


class _Tensors(nn.Module):
    """A model with named inputs that returns its first result: most others are copies of it."""

    def __init__(self, model: nn.Module, names: tuple[str, ...]) -> None:
        super().__init__()
        self.model, self.names = model, names

    def forward(self, *args: torch.Tensor) -> Any:
        result = self.model(**dict(zip(self.names, args)), return_dict=True)
        return [value for value in result.to_tuple() if isinstance(value, torch.Tensor)][:2]


def make(kind: str, config: str, fields: Mapping[str, Any], inputs: Any) -> Sample:
    declare_torchvision()
    import transformers

    settings = getattr(transformers, config)(**fields)
    model = getattr(transformers, kind)(settings).eval()
    given = inputs() if callable(inputs) else inputs
    return Sample(_Tensors(model, tuple(given)), tuple(given.values()))


def tokens() -> dict[str, torch.Tensor]:
    return {"input_ids": indices(VOCABULARY - 9, BATCH, LENGTH) + 5}


def masked_tokens() -> dict[str, torch.Tensor]:
    mask = torch.ones(BATCH, LENGTH, dtype=torch.int64)
    mask[0, 7:] = 0
    return {**tokens(), "attention_mask": mask}


def two_texts() -> dict[str, torch.Tensor]:
    return {**tokens(), "decoder_input_ids": indices(VOCABULARY - 9, BATCH, 5) + 5}


SIZES = {
    "vocab_size": VOCABULARY,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
SEQUENCES = {
    "vocab_size": VOCABULARY,
    "d_model": 32,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 48,
    "decoder_ffn_dim": 48,
    "max_position_embeddings": 64,
    "use_cache": False,
}

Row = tuple[str, Mapping[str, Any], Callable[[], dict[str, torch.Tensor]]]

_TASKS = ("ForObjectDetection", "ForSemanticSegmentation")


def builder(row: Row) -> Callable[[], Sample]:
    kind, fields, inputs = row
    base, task, _ = kind.partition("For")
    name, task = (base, task) if task and kind[len(base) :] in _TASKS else (kind, "")
    return lambda: make(kind if task else f"{kind}Model", f"{name}Config", fields, inputs)
