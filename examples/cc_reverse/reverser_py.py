"""An encoder-decoder that reverses digits. Its weights are set by hand: it needs no training."""

import torch
from torch import Tensor, nn

WIDTH, STEPS = 16, 64


class Reverser(nn.Module):
    """`encode` and `decode` share the table of digits and the number of the step."""

    step: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.digits = nn.Embedding(10, WIDTH, _weight=torch.eye(10, WIDTH))
        self.places = nn.Embedding(STEPS, STEPS, _weight=torch.eye(STEPS))
        self.register_buffer("step", torch.zeros(1, dtype=torch.int64))

    def encode(self, digits: Tensor) -> Tensor:
        """Digits [1, n] -> memory [1, n, 80]: each digit with its distance from the end."""
        self.step.zero_()
        distance = torch.arange(digits.shape[1] - 1, -1, -1)
        places = self.places(distance).unsqueeze(0)
        return torch.cat([self.digits(digits), places], dim=-1)

    def decode(self, memory: Tensor) -> Tensor:
        """Memory [1, n, 80] -> logits [1, 10] of the next digit of the reversed number."""
        query = 50.0 * self.places(self.step)
        values, keys = memory[0, :, :WIDTH], memory[0, :, WIDTH:]
        attention = torch.softmax(query @ keys.T, dim=-1)
        self.step.add_(1)
        logits: Tensor = attention @ values @ self.digits.weight.T
        return logits
