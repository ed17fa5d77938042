"""torch.compile, with its own defaults."""

from __future__ import annotations

import torch

from benchmarks.peers.eager import Torch
from benchmarks.peers.protocol import Setup, main


class Compiled(Torch):
    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self.module = torch.compile(self.module)


if __name__ == "__main__":
    main(Compiled)
