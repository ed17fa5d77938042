"""Likely: the Informer forecaster, ProbSparse attention with a distilling encoder."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

CHANNELS = 7
SEQ_LEN = 96
LABEL_LEN = 24
PRED_LEN = 24
D_MODEL = 64
HEADS = 8
D_FF = 256
FACTOR = 5


class ProbAttention(nn.Module):
    index_sample: Tensor

    def __init__(self, mask_flag: bool, length: int) -> None:
        super().__init__()
        self.mask_flag = mask_flag
        self.u = min(FACTOR * math.ceil(math.log(length)), length)
        index = torch.randint(length, (length, self.u))
        self.register_buffer("index_sample", index, persistent=False)

    def _prob(self, given: Tensor, known: Tensor) -> tuple[Tensor, Tensor]:
        batch_, heads_, key_count, width_ = known.shape
        _, _, query_count, _ = given.shape
        expanded = known.unsqueeze(-3).expand(batch_, heads_, query_count, key_count, width_)
        sampled = expanded[:, :, torch.arange(query_count).unsqueeze(1), self.index_sample, :]
        sampled_scores = torch.matmul(given.unsqueeze(-2), sampled.transpose(-2, -1)).squeeze(-2)
        sparsity = sampled_scores.max(-1)[0] - torch.div(sampled_scores.sum(-1), key_count)
        top = sparsity.topk(self.u, sorted=False)[1]
        reduced = given[
            torch.arange(batch_)[:, None, None], torch.arange(heads_)[None, :, None], top, :
        ]
        return torch.matmul(reduced, known.transpose(-2, -1)), top

    def forward(self, queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        batch_, length_, heads_, size_ = queries.shape
        queries, keys, values = (t.transpose(2, 1) for t in (queries, keys, values))
        scores, index = self._prob(queries, keys)
        scores = scores * (1.0 / math.sqrt(size_))
        rows = torch.arange(batch_)[:, None, None]
        heads = torch.arange(heads_)[None, :, None]
        if not self.mask_flag:
            context = (
                values.mean(dim=-2).unsqueeze(-2).expand(batch_, heads_, length_, size_).clone()
            )
        else:
            context = values.cumsum(dim=-2)
            _mask = (
                torch.ones(length_, scores.shape[-1], dtype=torch.bool).to(scores.device).triu(1)
            )
            _mask_ex = _mask[None, None, :].expand(batch_, heads_, length_, scores.shape[-1])
            indicator = _mask_ex[rows, heads, index, :].to(scores.device)
            scores.masked_fill_(indicator.view(scores.shape), -math.inf)
        attn = torch.softmax(scores, dim=-1)
        context[rows, heads, index, :] = torch.matmul(attn, values).type_as(context)
        return context.transpose(2, 1).contiguous()


class FullAttention(nn.Module):
    def forward(self, queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        scores = torch.einsum("blhe,bshe->bhls", queries, keys)
        attention_ = torch.softmax(1.0 / math.sqrt(queries.shape[-1]) * scores, dim=-1)
        return torch.einsum("bhls,bshd->blhd", attention_, values).contiguous()


class AttentionLayer(nn.Module):
    def __init__(self, attention: nn.Module, mix: bool = False) -> None:
        super().__init__()
        self.inner_attention = attention
        self.mix = mix
        self.query_projection = nn.Linear(D_MODEL, D_MODEL)
        self.key_projection = nn.Linear(D_MODEL, D_MODEL)
        self.value_projection = nn.Linear(D_MODEL, D_MODEL)
        self.out_projection = nn.Linear(D_MODEL, D_MODEL)

    def forward(self, queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        batch_, length_, _ = queries.shape
        _, steps_, _ = keys.shape
        queries = self.query_projection(queries).view(batch_, length_, HEADS, -1)
        keys = self.key_projection(keys).view(batch_, steps_, HEADS, -1)
        values = self.value_projection(values).view(batch_, steps_, HEADS, -1)
        out = self.inner_attention(queries, keys, values)
        if self.mix:
            out = out.transpose(2, 1).contiguous()
        result: Tensor = self.out_projection(out.view(batch_, length_, -1))
        return result


class ConvLayer(nn.Module):
    def __init__(self, c_in: int) -> None:
        super().__init__()
        self.downConv = nn.Conv1d(c_in, c_in, 3, padding=2, padding_mode="circular")
        self.norm = nn.BatchNorm1d(c_in)
        self.activation = nn.ELU()
        self.maxPool = nn.MaxPool1d(kernel_size=3, stride=2, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        x = self.activation(self.norm(self.downConv(x.permute(0, 2, 1))))
        x = self.maxPool(x)
        return x.transpose(1, 2)


class Layer(nn.Module):
    def __init__(self, attention: AttentionLayer, cross: AttentionLayer | None = None) -> None:
        super().__init__()
        self.attention = attention
        self.cross = cross
        self.conv1 = nn.Conv1d(in_channels=D_MODEL, out_channels=D_FF, kernel_size=1)
        self.conv2 = nn.Conv1d(in_channels=D_FF, out_channels=D_MODEL, kernel_size=1)
        self.norms = nn.ModuleList([nn.LayerNorm(D_MODEL) for _ in range(3 if cross else 2)])

    def forward(self, x: Tensor, memory: Tensor | None = None) -> Tensor:
        x = x + self.attention(x, x, x)
        x = self.norms[0](x)
        if self.cross is not None:
            x = x + self.cross(x, memory, memory)
            x = self.norms[1](x)
        y = functional.gelu(self.conv1(x.transpose(-1, 1)))
        y = self.conv2(y).transpose(-1, 1)
        out: Tensor = self.norms[-1](x + y)
        return out


class DataEmbedding(nn.Module):
    pe: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.token = nn.Conv1d(CHANNELS, D_MODEL, 3, padding=1, padding_mode="circular")
        nn.init.kaiming_normal_(self.token.weight, mode="fan_in", nonlinearity="leaky_relu")
        self.temporal = nn.Linear(4, D_MODEL)
        pe = torch.zeros(5000, D_MODEL)
        position = torch.arange(0, 5000).float().unsqueeze(1)
        div_term = (torch.arange(0, D_MODEL, 2).float() * -(math.log(10000.0) / D_MODEL)).exp()
        pe[:, 0::2] = torch.sin(position * div_term)
        pe[:, 1::2] = torch.cos(position * div_term)
        self.register_buffer("pe", pe.unsqueeze(0))

    def forward(self, x: Tensor, x_mark: Tensor) -> Tensor:
        value: Tensor = self.token(x.permute(0, 2, 1)).transpose(1, 2)
        temporal: Tensor = self.temporal(x_mark)
        return value + self.pe[:, : x.size(1)] + temporal


class Informer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.enc_embedding = DataEmbedding()
        self.dec_embedding = DataEmbedding()
        half = (SEQ_LEN + 2 - 1) // 2 + 1
        self.attn_layers = nn.ModuleList(
            [Layer(AttentionLayer(ProbAttention(False, n))) for n in (SEQ_LEN, half)]
        )
        self.conv_layer = ConvLayer(D_MODEL)
        self.encoder_norm = nn.LayerNorm(D_MODEL)
        self.decoder = Layer(
            AttentionLayer(ProbAttention(True, LABEL_LEN + PRED_LEN), mix=True),
            AttentionLayer(FullAttention()),
        )
        self.decoder_norm = nn.LayerNorm(D_MODEL)
        self.projection = nn.Linear(D_MODEL, CHANNELS, bias=True)

    def forward(self, x_enc: Tensor, x_mark_enc: Tensor, x_mark_dec: Tensor) -> Tensor:
        enc = self.enc_embedding(x_enc, x_mark_enc)
        enc = self.conv_layer(self.attn_layers[0](enc))
        enc = self.encoder_norm(self.attn_layers[1](enc))
        x_dec = torch.zeros_like(x_enc[:, :PRED_LEN, :]).float()
        x_dec = torch.cat([x_enc[:, -LABEL_LEN:, :], x_dec], dim=1)
        dec = self.decoder(self.dec_embedding(x_dec, x_mark_dec), enc)
        out: Tensor = self.projection(self.decoder_norm(dec))
        return out[:, -PRED_LEN:, :]


def build() -> nn.Module:
    torch.manual_seed(0)
    model = Informer()
    for module in model.modules():
        if isinstance(module, nn.BatchNorm1d):
            nn.init.uniform_(module.weight, 0.5, 1.5)
            nn.init.normal_(module.bias, 0.0, 0.1)
            assert module.running_mean is not None and module.running_var is not None
            module.running_mean.normal_(0.0, 0.1)
            module.running_var.uniform_(0.5, 1.5)
    return model.eval()
