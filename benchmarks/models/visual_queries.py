"""Q-Former: learned queries look at an image, compared with and matched to a text, as in BLIP-2."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

VISION = 96
SIZE = 64
PATCH = 8
WIDTH = 96
HEADS = 6
QUERIES = 8
LAYERS = 4
CROSS_EVERY = 2
VOCABULARY = 400
LENGTH = 20
PROJECTED = 64


class BertAttention(nn.Module):
    def __init__(self, encoder_width: int | None = None) -> None:
        super().__init__()
        self.attention_head_size = WIDTH // HEADS
        self.query = nn.Linear(WIDTH, WIDTH)
        self.key = nn.Linear(encoder_width or WIDTH, WIDTH)
        self.value = nn.Linear(encoder_width or WIDTH, WIDTH)
        self.dense = nn.Linear(WIDTH, WIDTH)
        self.LayerNorm = nn.LayerNorm(WIDTH, eps=1e-12)

    def transpose_for_scores(self, x: Tensor) -> Tensor:
        x = x.view(*x.size()[:-1], HEADS, self.attention_head_size)
        return x.permute(0, 2, 1, 3)

    def forward(
        self, hidden: Tensor, attention_mask: Tensor | None, encoded: Tensor | None = None
    ) -> Tensor:
        source = hidden if encoded is None else encoded
        key = self.transpose_for_scores(self.key(source))
        value = self.transpose_for_scores(self.value(source))
        query = self.transpose_for_scores(self.query(hidden))
        scores = torch.matmul(query, key.transpose(-1, -2))
        scores = scores / math.sqrt(self.attention_head_size)
        if attention_mask is not None:
            scores = scores + attention_mask
        probs = nn.Softmax(dim=-1)(scores)
        context = torch.matmul(probs, value).permute(0, 2, 1, 3).contiguous()
        context = context.view(*context.size()[:-2], WIDTH)
        out: Tensor = self.LayerNorm(self.dense(context) + hidden)
        return out


class FeedForward(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.intermediate, self.output = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)
        self.LayerNorm = nn.LayerNorm(WIDTH, eps=1e-12)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.LayerNorm(self.output(functional.gelu(self.intermediate(x))) + x)
        return out


class BertLayer(nn.Module):
    """All attend together; queries alone look at the image, and have a feed-forward apart."""

    def __init__(self, index: int) -> None:
        super().__init__()
        self.attention = BertAttention()
        self.has_cross_attention = index % CROSS_EVERY == 0
        if self.has_cross_attention:
            self.crossattention = BertAttention(VISION)
        self.text, self.query = FeedForward(), FeedForward()

    def forward(
        self, hidden: Tensor, mask: Tensor, query_length: int, image: Tensor | None
    ) -> Tensor:
        attended: Tensor = self.attention(hidden, mask)
        if query_length == 0:
            text: Tensor = self.text(attended)
            return text
        queries = attended[:, :query_length, :]
        if self.has_cross_attention:
            queries = self.crossattention(queries, None, image)
        out: Tensor = self.query(queries)
        if attended.shape[1] > query_length:
            out = torch.cat([out, self.text(attended[:, query_length:, :])], dim=1)
        return out


class QFormer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        patches = (SIZE // PATCH) ** 2
        self.patch_embed = nn.Conv2d(3, VISION, PATCH, PATCH)
        self.cls_token = nn.Parameter(torch.randn(1, 1, VISION))
        self.pos_embed = nn.Parameter(torch.randn(1, patches + 1, VISION) * 0.3)
        self.ln_vision = nn.LayerNorm(VISION)
        self.query_tokens = nn.Parameter(torch.randn(1, QUERIES, WIDTH))
        self.word_embeddings = nn.Embedding(VOCABULARY, WIDTH, padding_idx=0)
        self.position_embeddings = nn.Embedding(LENGTH, WIDTH)
        self.position_ids: Tensor
        self.register_buffer("position_ids", torch.arange(LENGTH).expand((1, -1)))
        self.LayerNorm = nn.LayerNorm(WIDTH, eps=1e-12)
        self.layer = nn.ModuleList(BertLayer(i) for i in range(LAYERS))
        self.vision_proj, self.text_proj = nn.Linear(WIDTH, PROJECTED), nn.Linear(WIDTH, PROJECTED)
        self.itm_head = nn.Linear(WIDTH, 2)
        self.temp = nn.Parameter(0.07 * torch.ones([]))

    def bert(
        self, tokens: Tensor | None, queries: Tensor | None, attended: Tensor, image: Tensor | None
    ) -> Tensor:
        parts = [] if queries is None else [queries]
        if tokens is not None:
            positions = self.position_embeddings(self.position_ids[:, : tokens.size(1)])
            parts.append(self.word_embeddings(tokens) + positions)
        hidden: Tensor = self.LayerNorm(torch.cat(parts, dim=1))
        extended = attended if attended.dim() == 3 else attended[:, None, :]
        mask = (1.0 - extended[:, None].to(dtype=hidden.dtype)) * -10000.0
        for layer in self.layer:
            hidden = layer(hidden, mask, 0 if queries is None else queries.shape[1], image)
        return hidden

    def forward(self, image: Tensor, tokens: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        x = self.patch_embed(image).flatten(2).transpose(1, 2)
        x = torch.cat((self.cls_token.expand(x.shape[0], -1, -1), x), dim=1) + self.pos_embed
        seen = self.ln_vision(x)
        queries = self.query_tokens.expand(seen.shape[0], -1, -1)
        query_atts = torch.ones(queries.size()[:-1], dtype=torch.long, device=image.device)
        text_atts = (tokens != 0).long()

        alone = self.bert(None, queries, query_atts, seen)
        text = self.bert(tokens, None, text_atts, None)
        image_feats = functional.normalize(self.vision_proj(alone), dim=-1)
        text_feat = functional.normalize(self.text_proj(text[:, 0, :]), dim=-1)
        sim_q2t = torch.matmul(image_feats, text_feat.unsqueeze(-1)).squeeze(-1)
        sim_i2t, _ = sim_q2t.max(-1)

        both = self.bert(tokens, queries, torch.cat([query_atts, text_atts], dim=1), seen)
        matched = self.itm_head(both[:, :QUERIES, :]).mean(dim=1)

        # To generate: words see the queries and what is before them, queries see themselves.
        ids = torch.arange(LENGTH, device=tokens.device)
        causal = ids[None, None, :].repeat(tokens.size(0), LENGTH, 1) <= ids[None, :, None]
        causal = causal.to(text_atts.dtype) * text_atts[:, None, :]
        upper = torch.cat([query_atts, torch.zeros_like(text_atts)], 1)[:, None, :]
        lower = torch.cat([query_atts[:, None, :].expand(-1, LENGTH, -1), causal], dim=-1)
        attended = torch.cat([upper.repeat(1, QUERIES, 1), lower], dim=1)
        words = self.bert(tokens, queries, attended, seen)[:, QUERIES:]
        logits = functional.linear(words, self.word_embeddings.weight) / math.sqrt(WIDTH)
        return sim_i2t / self.temp, matched, logits


def build() -> nn.Module:
    torch.manual_seed(0)
    return QFormer().eval()
