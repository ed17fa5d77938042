"""Packs weights at build time into the layouts that the slim runtime's matrix products read.

The layouts do not depend on the CPU that will run the model: see runtime/slim/kernels/gemm.h.
"""

from __future__ import annotations

import torch

from aoti_driver.packing.packed_format import GEMM_DTYPES, PANEL
from aoti_driver.program.weights_file import torch_dtype

_GEMM = {kind: torch_dtype(name) for kind, name in GEMM_DTYPES.items()}
_ROWS = "_rows"

KINDS = (*_GEMM, *(kind + _ROWS for kind in _GEMM))


def pack(kind: str, tensor: torch.Tensor) -> torch.Tensor:
    """The bytes of ``tensor``, a whole constant, in the layout ``kind``.

    "gemm_f32", "gemm_bf16", "gemm_f16": a weight [n, k], as torch.nn.Linear has it, for products
    with its transpose. With the suffix "_rows": a matrix [k, n], for products with itself. A stack
    of matrices, for batched products, has the layout of each one, one after the other.
    """
    dtype = _GEMM.get(kind.removesuffix(_ROWS))
    if dtype is None:
        raise ValueError(f"no layout {kind!r}: there are {', '.join(KINDS)}")
    if tensor.dtype != dtype or tensor.dim() not in (2, 3):
        raise ValueError(
            f"{kind} is for matrices of {dtype} and stacks of them, "
            f"not {tensor.dtype} of {tensor.dim()} dims"
        )
    columns = tensor if kind.endswith(_ROWS) else tensor.mT
    return _panels(columns).view(torch.uint8).flatten()


def packable(tensor: torch.Tensor) -> str | None:
    """The kind for ``tensor`` as a weight [n, k] of a linear layer, or a stack of them; None if
    packing does not pay off.

    Products with one row read plain 16-bit weights at least as fast as packed ones.
    """
    wanted = tensor.dim() in (2, 3) and 0 not in tensor.shape and tensor.dtype == torch.float32
    return "gemm_f32" if wanted else None


def _panels(b: torch.Tensor) -> torch.Tensor:
    """b[..., k, n] as panels [..., n / 16, k, 16], with zeros in the columns that the last panel
    lacks.
    """
    *stack, k, n = b.shape
    panels = -(-n // PANEL)
    missing = panels * PANEL - n
    padded = torch.nn.functional.pad(b, (0, missing)) if missing else b
    return padded.reshape(*stack, k, panels, PANEL).transpose(-3, -2).contiguous()
