"""Scales the rows of a tensor of PyTorch on the first GPU to the length 1."""

import sys

import torch

from examples.triton_kernel import normalize  # type: ignore[attr-defined]  # generated


def main() -> str | None:
    if not torch.cuda.is_available():
        return f"torch {torch.__version__} finds no GPU: this needs one, and a torch for CUDA"
    kernel = normalize.load()
    x = torch.arange(-50.0, 250.0, device="cuda").reshape(3, 100)
    y = torch.empty_like(x)
    kernel(x, y, *x.shape, 1e-6, stream=torch.cuda.current_stream().cuda_stream)
    print(y.norm(dim=1))
    return None


if __name__ == "__main__":
    sys.exit(main())
