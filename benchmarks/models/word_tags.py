"""BiLSTM-CRF: tags of words by a bidirectional LSTM, Viterbi's best path and the partition."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

WORDS = 1000
LETTERS = 64
TAGS = 9
WORD_WIDTH = 100
LETTER_WIDTH = 30
HIDDEN = 100
LENGTH = 32


class CRF(nn.Module):
    """Sequence first, as its users know it: scores (seq, batch, tags), mask (seq, batch)."""

    def __init__(self, num_tags: int) -> None:
        super().__init__()
        self.num_tags = num_tags
        self.start_transitions = nn.Parameter(torch.empty(num_tags))
        self.end_transitions = nn.Parameter(torch.empty(num_tags))
        self.transitions = nn.Parameter(torch.empty(num_tags, num_tags))
        for parameter in self.parameters():
            nn.init.uniform_(parameter, -1.0, 1.0)
        # A few transitions are against the rules of tagging: inside never follows outside.
        with torch.no_grad():
            self.transitions[0, 2::2] = -10000.0
            self.start_transitions[2::2] = -10000.0

    def score(self, emissions: Tensor, tags: Tensor, mask: Tensor) -> Tensor:
        seq_length, batch = tags.shape
        rows = torch.arange(batch, device=tags.device)
        weight = mask.type_as(emissions)
        score = self.start_transitions[tags[0]]
        score = score + emissions[0, rows, tags[0]]
        for i in range(1, seq_length):
            score += self.transitions[tags[i - 1], tags[i]] * weight[i]
            score += emissions[i, rows, tags[i]] * weight[i]
        seq_ends = mask.long().sum(dim=0) - 1
        score += self.end_transitions[tags[seq_ends, rows]]
        return score

    def normalizer(self, emissions: Tensor, mask: Tensor) -> Tensor:
        score = self.start_transitions + emissions[0]
        for i in range(1, emissions.size(0)):
            broadcast_score = score.unsqueeze(2)
            broadcast_emissions = emissions[i].unsqueeze(1)
            next_score = broadcast_score + self.transitions + broadcast_emissions
            next_score = torch.logsumexp(next_score, dim=1)
            score = torch.where(mask[i].unsqueeze(1), next_score, score)
        return torch.logsumexp(score + self.end_transitions, dim=1)

    def viterbi(self, emissions: Tensor, mask: Tensor, pad_tag: int) -> tuple[Tensor, Tensor]:
        seq_length, batch_size = mask.shape
        device = emissions.device
        score = self.start_transitions + emissions[0]
        history_idx = torch.zeros(
            (seq_length, batch_size, self.num_tags), dtype=torch.long, device=device
        )
        stay = torch.zeros((batch_size, self.num_tags), dtype=torch.long, device=device)
        pad = torch.full((batch_size, seq_length), pad_tag, dtype=torch.long, device=device)
        for i in range(1, seq_length):
            next_score = score.unsqueeze(2) + self.transitions + emissions[i].unsqueeze(1)
            next_score, indices = next_score.max(dim=1)
            score = torch.where(mask[i].unsqueeze(-1), next_score, score)
            history_idx[i - 1] = torch.where(mask[i].unsqueeze(-1), indices, stay)

        best_score, end_tag = (score + self.end_transitions).max(dim=1)
        seq_ends = mask.long().sum(dim=0) - 1
        history_idx = history_idx.transpose(1, 0).contiguous()
        history_idx.scatter_(
            1,
            seq_ends.view(-1, 1, 1).expand(-1, 1, self.num_tags),
            end_tag.view(-1, 1, 1).expand(-1, 1, self.num_tags),
        )
        history_idx = history_idx.transpose(1, 0).contiguous()

        best_tags = torch.zeros((batch_size, 1), dtype=torch.long, device=device)
        path = torch.zeros((seq_length, batch_size, 1), dtype=torch.long, device=device)
        for idx in range(seq_length - 1, -1, -1):
            best_tags = torch.gather(history_idx[idx], 1, best_tags)
            path[idx] = best_tags.view(batch_size, -1)
        best = torch.where(mask.transpose(0, 1), path.squeeze(-1).transpose(0, 1), pad)
        return best, best_score


def reverse_padded(x: Tensor, lengths: Tensor) -> Tensor:
    """Turns each row's first words around, and leaves what pads them in place."""
    places = torch.arange(x.size(1), device=x.device).unsqueeze(0)
    index = lengths.unsqueeze(1) - 1 - places
    index = torch.where(index < 0, places, index)
    return x.gather(1, index.unsqueeze(-1).expand_as(x))


class Tagger(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(WORDS, WORD_WIDTH, padding_idx=0)
        self.letters = nn.Embedding(LETTERS, LETTER_WIDTH, padding_idx=0)
        self.conv = nn.Conv1d(LETTER_WIDTH, LETTER_WIDTH, 3, padding=2)
        width = WORD_WIDTH + LETTER_WIDTH
        self.forwards = nn.LSTM(width, HIDDEN, batch_first=True)
        self.backwards = nn.LSTM(width, HIDDEN, batch_first=True)
        self.upper = nn.LSTM(2 * HIDDEN, HIDDEN // 2, bidirectional=True)
        self.hidden2tag = nn.Linear(HIDDEN, TAGS)
        self.crf = CRF(TAGS)

    def forward(
        self, words: Tensor, letters: Tensor, lengths: Tensor
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        batch = words.size(0)
        mask = torch.arange(words.size(1), device=words.device)[None] < lengths[:, None]
        spelled = self.letters(letters).flatten(0, 1).transpose(1, 2)
        spelled = functional.max_pool1d(self.conv(spelled), letters.size(2) + 2).squeeze(2)
        x = torch.cat([self.words(words), spelled.view(batch, words.size(1), -1)], dim=2)
        ahead, _ = self.forwards(x)
        behind, _ = self.backwards(reverse_padded(x, lengths))
        x = torch.cat([ahead, reverse_padded(behind, lengths)], dim=2) * mask.unsqueeze(-1)
        x, (last, _) = self.upper(x.transpose(0, 1))
        emissions = self.hidden2tag(x) * 12

        seq_mask = mask.transpose(0, 1)
        best, best_score = self.crf.viterbi(emissions, seq_mask, -1)
        partition = self.crf.normalizer(emissions, seq_mask)
        tags = best.clamp(min=0).transpose(0, 1)
        likelihood = self.crf.score(emissions, tags, seq_mask) - partition
        per_word = torch.stack([best_score, partition, likelihood], dim=1) / lengths.unsqueeze(1)
        return best, per_word, emissions, torch.cat(last.unbind(0), dim=1)


def build() -> nn.Module:
    torch.manual_seed(0)
    return Tagger().eval()
