"""The joint network of a transducer for speech: every moment with every word so far."""

from __future__ import annotations

import torch
from torch import Tensor, nn

WORDS = 512
WIDTH = 320
BANDS = 80
HIDDEN = 320


class Transducer(nn.Module):
    """float32[batch, 100, 80] and int64[batch, 12] to float32[batch, 100, 12, 512]"""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.LSTM(BANDS, WIDTH, 2, batch_first=True)
        self.words = nn.Embedding(WORDS, WIDTH)
        self.predictor = nn.LSTM(WIDTH, WIDTH, 1, batch_first=True)
        self.of_sound, self.of_words = (nn.Linear(WIDTH, HIDDEN) for _ in range(2))
        self.head = nn.Linear(HIDDEN, WORDS)

    def forward(self, sound: Tensor, words: Tensor) -> Tensor:
        heard = self.of_sound(self.encoder(sound)[0])
        said = self.of_words(self.predictor(self.words(words))[0])
        joint = torch.tanh(heard[:, :, None] + said[:, None])
        result: Tensor = self.head(joint).log_softmax(-1)
        return result


def build() -> nn.Module:
    torch.manual_seed(0)
    return Transducer().eval()
