"""Stands for a training run: `make_adapter.py OUT RANK` writes an adapter of this rank."""

import sys

import numpy as np
from safetensors.numpy import save_file

RANK = 4  # of the model


def padded(matrix: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    """The matrix with zeros to its right and below it."""
    rows, columns = matrix.shape
    return np.pad(matrix, ((0, shape[0] - rows), (0, shape[1] - columns))).astype(np.float32)


def adapter(rank: int) -> dict[str, np.ndarray]:
    random = np.random.default_rng(rank)
    return {
        "layer.down": padded(random.normal(size=(rank, 8)), (RANK, 8)),
        "layer.up": padded(random.normal(size=(3, rank)), (3, RANK)),
    }


if __name__ == "__main__":
    save_file(adapter(int(sys.argv[2])), sys.argv[1])
