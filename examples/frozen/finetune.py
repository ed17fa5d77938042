"""Fine-tunes the exported program with stock PyTorch, without the model's source.

finetune PROGRAM.export.pt2 OUT.safetensors
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import nn


def examples(count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """float32[count, 8] and float32[count, 1]: stands for the data of the day."""
    features = 2 * torch.rand(count, 8) - 1
    return features, (features.sum(1, keepdim=True) > 0).float()


def finetune(program: Path, out: Path, steps: int = 300) -> float:
    """Writes the tuned weights, and returns the loss of the last step."""
    torch.manual_seed(0)
    module = torch.export.load(program).module()
    optimizer = torch.optim.Adam(module.parameters(), lr=0.02)
    loss = torch.tensor(0.0)
    for _ in range(steps):
        features, wanted = examples(64)
        loss = nn.functional.binary_cross_entropy(module(features).reshape(-1, 1), wanted)
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    # Running programs map the old file: another one takes its place, none is written into.
    save_file(module.state_dict(), out.with_suffix(".new"))
    out.with_suffix(".new").replace(out)
    return loss.item()


if __name__ == "__main__":
    print(f"loss: {finetune(Path(sys.argv[1]), Path(sys.argv[2])):.3f}")
