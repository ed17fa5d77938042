"""Eager PyTorch, and what the two contestants that are PyTorch share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from benchmarks.peers.protocol import Array, Peer, Setup, main


class Torch(Peer):
    """The module as `prepare` has saved it, called without autograd."""

    def __init__(self, setup: Setup) -> None:
        torch.set_num_threads(setup.threads)
        torch.set_grad_enabled(False)
        self.setup = setup
        # Maps the weights, as the compiled models do.
        path = Path(setup.files) / "module.pt"
        self.module: Any = torch.load(path, weights_only=False, mmap=True)
        self.inputs: dict[str, dict[str, torch.Tensor]] = {}

    def load(self, case: str, path: str) -> None:
        self.inputs[case] = self._read(path)

    def _read(self, path: str) -> dict[str, torch.Tensor]:
        arrays = self.setup.inputs(path)
        return {name: torch.from_numpy(array) for name, array in arrays.items()}

    def call(self, case: str) -> object:
        return self.module(**self.inputs[case])

    def caller(self, case: str, path: str) -> Callable[[], object]:
        inputs = self._read(path)

        def call() -> object:
            with torch.no_grad():  # each thread has a mode of its own
                return self.module(**inputs)

        return call

    def outputs(self, case: str) -> list[Array]:
        result: Any = self.module(**self.inputs[case])
        tensors = result if isinstance(result, (tuple, list)) else [result]
        return [tensor.numpy() for tensor in tensors]


if __name__ == "__main__":
    main(Torch)
