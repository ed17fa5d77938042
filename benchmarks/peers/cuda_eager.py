"""Eager PyTorch on a GPU, and what the contestants that are PyTorch on a GPU share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from benchmarks.peers.protocol import Array, Peer, Setup, main


class TorchOnCuda(Peer):
    """The module as `prepare` has saved it, with float32 as exact as rules_aoti has it.

    Inputs are on the GPU, outputs stay there, and a call ends when the GPU's work is done.
    """

    def __init__(self, setup: Setup) -> None:
        if not torch.cuda.is_available():
            raise RuntimeError(f"torch {torch.__version__} finds no GPU: give --python another one")
        torch.set_num_threads(setup.threads)
        torch.set_grad_enabled(False)
        torch.backends.cuda.matmul.allow_tf32 = False
        torch.backends.cudnn.allow_tf32 = False
        self.setup = setup
        path = Path(setup.files) / "module.pt"
        module: Any = torch.load(path, weights_only=False, mmap=True)
        self.module: Any = module.cuda()
        self.inputs: dict[str, dict[str, torch.Tensor]] = {}

    def load(self, case: str, path: str) -> None:
        arrays = self.setup.inputs(path)
        self.inputs[case] = {name: torch.from_numpy(a).cuda() for name, a in arrays.items()}

    def call(self, case: str) -> object:
        result = self.module(**self.inputs[case])
        torch.cuda.synchronize()
        return result

    def outputs(self, case: str) -> list[Array]:
        result: Any = self.call(case)
        tensors = result if isinstance(result, (tuple, list)) else [result]
        return [tensor.cpu().numpy() for tensor in tensors]


if __name__ == "__main__":
    main(TorchOnCuda)
