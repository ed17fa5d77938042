"""torch.compile on a GPU, with its own defaults."""

from __future__ import annotations

import torch

from benchmarks.peers.cuda_eager import TorchOnCuda
from benchmarks.peers.protocol import Setup, main


class Compiled(TorchOnCuda):
    mode: str | None = None

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self.module = torch.compile(self.module, mode=self.mode)


if __name__ == "__main__":
    main(Compiled)
