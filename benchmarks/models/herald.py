"""FastSpeech 2: text to a mel spectrogram with variance predictors and aligned durations."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

PHONEMES = 80
HIDDEN = 128
HEADS = 2
FILTER = 512
VARIANCE_FILTER = 128
MELS = 80
POSITIONS = 128


def get_mask_from_lengths(lengths: Tensor, max_len: int) -> Tensor:
    ids = torch.arange(0, max_len, device=lengths.device)
    ids = ids.unsqueeze(0).expand(lengths.shape[0], -1)
    return ids >= lengths.unsqueeze(1).expand(-1, max_len)


def get_sinusoid_encoding_table(n_position: int, d_hid: int) -> Tensor:
    table = torch.arange(d_hid) // 2 * 2 / d_hid
    table = torch.arange(n_position)[:, None] / torch.pow(10000, table)
    table[:, 0::2] = torch.sin(table[:, 0::2])
    table[:, 1::2] = torch.cos(table[:, 1::2])
    return table


class MultiHeadAttention(nn.Module):
    def __init__(self, n_head: int, d_model: int) -> None:
        super().__init__()
        self.n_head, self.d_k = n_head, d_model // n_head
        self.w_qs = nn.Linear(d_model, d_model)
        self.w_ks = nn.Linear(d_model, d_model)
        self.w_vs = nn.Linear(d_model, d_model)
        self.layer_norm = nn.LayerNorm(d_model)
        self.fc = nn.Linear(d_model, d_model)

    def split(self, x: Tensor) -> Tensor:
        sz_b, length, _ = x.size()
        x = x.view(sz_b, length, self.n_head, self.d_k)
        return x.permute(2, 0, 1, 3).contiguous().view(-1, length, self.d_k)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        sz_b, length, _ = x.size()
        q, k, v = self.split(self.w_qs(x)), self.split(self.w_ks(x)), self.split(self.w_vs(x))
        mask = mask.repeat(self.n_head, 1, 1)
        attn = torch.bmm(q, k.transpose(1, 2)) / self.d_k**0.5
        attn = attn.masked_fill(mask, float("-inf"))
        output = torch.bmm(functional.softmax(attn, dim=2), v)
        output = output.view(self.n_head, sz_b, length, self.d_k)
        output = output.permute(1, 2, 0, 3).contiguous().view(sz_b, length, -1)
        x = self.layer_norm(self.fc(output) + x)
        return x


class FFTBlock(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.slf_attn = MultiHeadAttention(HEADS, HIDDEN)
        self.w_1 = nn.Conv1d(HIDDEN, FILTER, kernel_size=9, padding=4)
        self.w_2 = nn.Conv1d(FILTER, HIDDEN, kernel_size=1)
        self.layer_norm = nn.LayerNorm(HIDDEN)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        x = self.slf_attn(x, mask.unsqueeze(1).expand(-1, x.size(1), -1))
        x = x.masked_fill(mask.unsqueeze(-1), 0)
        output = self.w_2(functional.relu(self.w_1(x.transpose(1, 2)))).transpose(1, 2)
        x = self.layer_norm(output + x)
        return x.masked_fill(mask.unsqueeze(-1), 0)


class Stack(nn.Module):
    def __init__(self, n_layers: int) -> None:
        super().__init__()
        table = get_sinusoid_encoding_table(POSITIONS, HIDDEN).unsqueeze(0)
        self.position_enc = nn.Parameter(table, requires_grad=False)
        self.layer_stack = nn.ModuleList([FFTBlock() for _ in range(n_layers)])

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        x = x + self.position_enc[:, : x.shape[1], :].expand(x.shape[0], -1, -1)
        for layer in self.layer_stack:
            x = layer(x, mask)
        return x


class Conv(nn.Conv1d):
    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x.contiguous().transpose(1, 2)).contiguous().transpose(1, 2)


class VariancePredictor(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        for width in (HIDDEN, VARIANCE_FILTER):
            layers += [Conv(width, VARIANCE_FILTER, 3, padding=1), nn.ReLU()]
            layers += [nn.LayerNorm(VARIANCE_FILTER), nn.Dropout(0.5)]
        self.conv_layer = nn.Sequential(*layers)
        self.linear_layer = nn.Linear(VARIANCE_FILTER, 1)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        x = self.linear_layer(self.conv_layer(x)).squeeze(-1)
        return x.masked_fill(mask, 0.0)


class VarianceEmbedding(nn.Module):
    def __init__(self, bins: int) -> None:
        super().__init__()
        self.predictor = VariancePredictor()
        self.bins = nn.Parameter(torch.linspace(-1, 1, bins - 1), requires_grad=False)
        self.embedding = nn.Embedding(bins, HIDDEN)

    def forward(self, x: Tensor, mask: Tensor, target: Tensor | None) -> tuple[Tensor, Tensor]:
        prediction = self.predictor(x, mask)
        values = prediction if target is None else target
        return prediction, self.embedding(torch.bucketize(values, self.bins))


class FastSpeech2(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.src_word_emb = nn.Embedding(PHONEMES, HIDDEN, padding_idx=0)
        self.encoder = Stack(2)
        self.duration_predictor = VariancePredictor()
        self.pitch = VarianceEmbedding(256)
        # Few bins: the energy is computed, and one beside a bin's edge may round to either side.
        self.energy = VarianceEmbedding(8)
        self.decoder = Stack(2)
        self.mel_linear = nn.Linear(HIDDEN, MELS)

    def forward(
        self, texts: Tensor, src_lens: Tensor, pitches: Tensor, alignment: Tensor, mel_lens: Tensor
    ) -> tuple[Tensor, ...]:
        src_masks = get_mask_from_lengths(src_lens, texts.shape[1])
        mel_masks = get_mask_from_lengths(mel_lens, alignment.shape[1])
        x = self.encoder(self.src_word_emb(texts), src_masks)
        log_durations = self.duration_predictor(x, src_masks)
        pitch_prediction, embedding = self.pitch(x, src_masks, pitches)
        x = x + embedding
        energy_prediction, embedding = self.energy(x, src_masks, None)
        x = x + embedding
        # One phoneme for each frame, whatever the given scores are.
        alignment = alignment.masked_fill(src_masks.unsqueeze(1), 0.0)
        best = alignment.argmax(dim=2, keepdim=True)
        alignment = torch.zeros_like(alignment).scatter_(2, best, 1.0)
        output = self.mel_linear(self.decoder(torch.matmul(alignment, x), mel_masks))
        return output, pitch_prediction, energy_prediction, log_durations


def build() -> nn.Module:
    torch.manual_seed(0)
    return FastSpeech2().eval()
