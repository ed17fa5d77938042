"""all-MiniLM-L6-v2: a BERT encoder that turns a sentence into a vector of length one.

Module names are those of the checkpoint (and so of the transformers library's BertModel), so the
weights load by name without a mapping.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

VOCABULARY = 30522
WIDTH = 384
FEED_FORWARD = 1536
LAYERS = 6
HEADS = 12
MAX_TOKENS = 512
TOKEN_TYPES = 2
EPSILON = 1e-12


class Embeddings(nn.Module):
    """Word, position and token type (always the first: there is one sentence), normalised."""

    position_ids: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.word_embeddings = nn.Embedding(VOCABULARY, WIDTH)
        self.position_embeddings = nn.Embedding(MAX_TOKENS, WIDTH)
        self.token_type_embeddings = nn.Embedding(TOKEN_TYPES, WIDTH)
        self.LayerNorm = nn.LayerNorm(WIDTH, eps=EPSILON)
        self.register_buffer("position_ids", torch.arange(MAX_TOKENS)[None])

    def forward(self, input_ids: Tensor) -> Tensor:
        position_ids = self.position_ids[:, : input_ids.shape[1]]
        x: Tensor = self.word_embeddings(input_ids) + self.position_embeddings(position_ids)
        x = self.LayerNorm(x + self.token_type_embeddings.weight[0])
        return x


class SelfAttention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.query = nn.Linear(WIDTH, WIDTH)
        self.key = nn.Linear(WIDTH, WIDTH)
        self.value = nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        q, k, v = (
            project(x).unflatten(-1, (HEADS, WIDTH // HEADS)).transpose(1, 2)
            for project in (self.query, self.key, self.value)
        )
        y = nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        return y.transpose(1, 2).flatten(2)


class Output(nn.Module):
    """A projection back to the residual, added and normalised."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.dense = nn.Linear(size, WIDTH)
        self.LayerNorm = nn.LayerNorm(WIDTH, eps=EPSILON)

    def forward(self, x: Tensor, residual: Tensor) -> Tensor:
        x = self.LayerNorm(self.dense(x) + residual)
        return x


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.self = SelfAttention()
        self.output = Output(WIDTH)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        x = self.output(self.self(x, mask), x)
        return x


class Intermediate(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.dense = nn.Linear(WIDTH, FEED_FORWARD)

    def forward(self, x: Tensor) -> Tensor:
        return nn.functional.gelu(self.dense(x))


class Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attention = Attention()
        self.intermediate = Intermediate()
        self.output = Output(FEED_FORWARD)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        x = self.attention(x, mask)
        x = self.output(self.intermediate(x), x)
        return x


class Encoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.ModuleList(Layer() for _ in range(LAYERS))

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        for layer in self.layer:
            x = layer(x, mask)
        return x


class Pooler(nn.Module):
    """BERT's own head. A sentence vector does not use it; the checkpoint has it."""

    def __init__(self) -> None:
        super().__init__()
        self.dense = nn.Linear(WIDTH, WIDTH)


class SentenceEncoder(nn.Module):
    """BERT, the mean over a sentence's tokens, and division by the length of the vector."""

    def __init__(self) -> None:
        super().__init__()
        self.embeddings = Embeddings()
        self.encoder = Encoder()
        self.pooler = Pooler()

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """Sentences as vectors; the dot product of two is their cosine similarity.

        Args:
          input_ids: int64[batch, seq], WordPiece ids from [CLS] to [SEP], then padding.
          attention_mask: int64[batch, seq], 1 for a token, 0 for padding.

        Returns:
          float32[batch, 384].
        """
        seen = attention_mask != 0
        # Finite, so that a row of nothing but padding gives zeros rather than NaN.
        mask = torch.where(seen, 0.0, torch.finfo(torch.float32).min)[:, None, None, :]
        x = self.encoder(self.embeddings(input_ids), mask)
        weight = seen[..., None].to(x.dtype)
        mean = (x * weight).sum(1) / weight.sum(1).clamp(min=1.0)
        return nn.functional.normalize(mean, dim=-1)
