"""Whether a compiled program's results are eager PyTorch's."""

from __future__ import annotations

from collections.abc import Sequence

import torch

# dtype -> relative and absolute tolerance: sums are made in another order.
_TOLERANCES = {
    torch.float16: (1e-2, 1e-2),
    torch.bfloat16: (5e-2, 5e-2),
    torch.float64: (1e-9, 1e-9),
    torch.complex128: (1e-9, 1e-9),
}


def difference(
    actual: Sequence[torch.Tensor], expected: Sequence[torch.Tensor], values: bool
) -> str:
    """Empty where there is none. values: whether the numbers are to be compared, too."""
    if len(actual) != len(expected):
        return f"{len(actual)} results, expected {len(expected)}"
    for i, (a, e) in enumerate(zip(actual, expected, strict=True)):
        if a.shape != e.shape or a.dtype != e.dtype:
            return f"result {i}: {_kind(a)}, expected {_kind(e)}"
        if not values:
            continue
        e = e.detach().resolve_conj().resolve_neg()
        if a.dtype.itemsize == 1 and a.is_floating_point():
            a, e = a.float(), e.float()
        relative, absolute = _TOLERANCES.get(a.dtype, (1e-4, 1e-4))
        if not torch.allclose(a, e, relative, absolute, equal_nan=True):
            wrong = ~torch.isclose(a, e, relative, absolute, equal_nan=True)
            place = tuple(wrong.nonzero()[0].tolist())
            return (
                f"result {i} ({_kind(a)}): {int(wrong.sum())} of {a.numel()} values differ, "
                f"at {place}: {a[place].item()}, expected {e[place].item()}"
            )
    return ""


def _kind(tensor: torch.Tensor) -> str:
    return f"{str(tensor.dtype).removeprefix('torch.')}{list(tensor.shape)}"
