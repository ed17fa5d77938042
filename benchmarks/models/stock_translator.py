"""nn.Transformer: translation with PyTorch's own encoder and decoder, post-norm and pre-norm."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

SOURCE_VOCABULARY = 800
TARGET_VOCABULARY = 600
PAD = 0
LONGEST = 64
WIDTH = 128
HEADS = 8
FEED_FORWARD = 512
LAYERS = 2


class PositionalEncoding(nn.Module):
    def __init__(self, d_model: int, dropout: float = 0.1, max_len: int = LONGEST) -> None:
        super().__init__()
        self.dropout = nn.Dropout(p=dropout)
        position = torch.arange(max_len).unsqueeze(1)
        div_term = torch.exp(torch.arange(0, d_model, 2) * (-math.log(10000.0) / d_model))
        pe = torch.zeros(max_len, 1, d_model)
        pe[:, 0, 0::2] = torch.sin(position * div_term)
        pe[:, 0, 1::2] = torch.cos(position * div_term)
        self.pe: Tensor
        self.register_buffer("pe", pe)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.pe[: x.size(0)]
        out: Tensor = self.dropout(x)
        return out


class Seq2Seq(nn.Module):
    """The tutorial's way: sequence first, post-norm, nn.Transformer as a whole."""

    def __init__(self) -> None:
        super().__init__()
        self.transformer = nn.Transformer(
            d_model=WIDTH,
            nhead=HEADS,
            num_encoder_layers=LAYERS,
            num_decoder_layers=LAYERS,
            dim_feedforward=FEED_FORWARD,
        )
        self.src_tok_emb = nn.Embedding(SOURCE_VOCABULARY, WIDTH)
        self.tgt_tok_emb = nn.Embedding(TARGET_VOCABULARY, WIDTH)
        self.positional_encoding = PositionalEncoding(WIDTH)
        self.generator = nn.Linear(WIDTH, TARGET_VOCABULARY)
        for p in self.parameters():
            if p.dim() > 1:
                nn.init.xavier_uniform_(p)

    def forward(self, src: Tensor, tgt: Tensor) -> Tensor:
        src_len, tgt_len = src.shape[0], tgt.shape[0]
        src_mask = torch.zeros((src_len, src_len), device=src.device).type(torch.bool)
        tgt_mask = (torch.triu(torch.ones((tgt_len, tgt_len), device=tgt.device)) == 1).t()
        tgt_mask = (
            tgt_mask.float()
            .masked_fill(tgt_mask == 0, float("-inf"))
            .masked_fill(tgt_mask == 1, 0.0)
        )
        src_padding_mask = (src == PAD).transpose(0, 1)
        tgt_padding_mask = (tgt == PAD).transpose(0, 1)
        src_emb = self.positional_encoding(self.src_tok_emb(src.long()) * math.sqrt(WIDTH))
        tgt_emb = self.positional_encoding(self.tgt_tok_emb(tgt.long()) * math.sqrt(WIDTH))
        # Without is_causal the encoder compares the mask's values, which no graph can hold.
        memory = self.transformer.encoder(
            src_emb, mask=src_mask, src_key_padding_mask=src_padding_mask, is_causal=False
        )
        outs = self.transformer.decoder(
            tgt_emb,
            memory,
            tgt_mask=tgt_mask,
            memory_mask=None,
            tgt_key_padding_mask=tgt_padding_mask,
            memory_key_padding_mask=src_padding_mask,
            tgt_is_causal=True,
        )
        logits: Tensor = self.generator(outs)
        return logits


class Scorer(nn.Module):
    """Batch first: a post-norm encoder of the source, a pre-norm decoder of the target."""

    def __init__(self) -> None:
        super().__init__()
        self.src_embed = nn.Embedding(SOURCE_VOCABULARY, WIDTH, padding_idx=PAD)
        self.tgt_embed = nn.Embedding(TARGET_VOCABULARY, WIDTH, padding_idx=PAD)
        self.position = nn.Embedding(LONGEST, WIDTH)
        layer = nn.TransformerEncoderLayer(
            WIDTH, HEADS, FEED_FORWARD, activation="gelu", batch_first=True
        )
        self.reader = nn.TransformerEncoder(layer, num_layers=LAYERS)
        language_layer = nn.TransformerEncoderLayer(
            WIDTH, HEADS, 2 * WIDTH, layer_norm_eps=1e-6, batch_first=True, norm_first=True
        )
        self.language = nn.TransformerEncoder(language_layer, 1, enable_nested_tensor=False)
        self.writer = nn.TransformerDecoder(
            nn.TransformerDecoderLayer(
                WIDTH,
                HEADS,
                2 * WIDTH,
                activation=nn.functional.silu,
                batch_first=True,
                norm_first=True,
                bias=False,
            ),
            LAYERS,
            norm=nn.LayerNorm(WIDTH),
        )
        self.head = nn.Linear(WIDTH, TARGET_VOCABULARY, bias=False)
        self.head.weight = self.tgt_embed.weight

    def forward(self, src: Tensor, tgt: Tensor) -> Tensor:
        padding = src.eq(PAD)
        places = torch.arange(src.size(1), device=src.device).unsqueeze(0).expand_as(src)
        memory = self.src_embed(src) + self.position(places)
        memory = self.reader(memory, src_key_padding_mask=padding)

        size = tgt.size(1)
        x = self.tgt_embed(tgt) + self.position.weight[:size]
        causal = nn.Transformer.generate_square_subsequent_mask(size, device=tgt.device)
        x = self.language(x, mask=causal, is_causal=True)
        x = self.writer(
            x,
            memory,
            tgt_mask=causal,
            tgt_key_padding_mask=tgt.eq(PAD),
            memory_key_padding_mask=padding,
            tgt_is_causal=True,
        )
        scores: Tensor = self.head(x) / math.sqrt(WIDTH)
        return scores.log_softmax(dim=-1)


class Translator(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.seq2seq = Seq2Seq()
        self.scorer = Scorer()

    def forward(self, source: Tensor, target: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        places = torch.arange(source.size(0), device=source.device)[:, None]
        source = source.masked_fill(places >= lengths[0], PAD)
        target = target.masked_fill(places[: target.size(0)] >= lengths[1], PAD)
        scores = self.scorer(source.t(), target.t())
        return self.seq2seq(source, target), scores


def build() -> nn.Module:
    torch.manual_seed(0)
    return Translator().eval()
