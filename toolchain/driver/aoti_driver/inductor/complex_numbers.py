"""Replaces operators on complex tensors by operators that compiled code can call.

Inductor writes no kernels for complex numbers. torch's C interface does not accept a complex number
as an argument, nor any number where it calls an operator by name.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

from aoti_driver.program import aliasing
from aoti_driver.torch_internals import decomposition_table

_aten = torch.ops.aten


@contextlib.contextmanager
def decompositions() -> Iterator[None]:
    """Adds these decompositions to Inductor's; each passes real tensors to the one that it
    replaces.
    """
    ours: dict[Any, Callable[..., Any]] = {
        _aten.sub.Tensor: _sub,
        _aten.addmm.default: _product(torch.mm),
        _aten.baddbmm.default: _product(torch.bmm),
        _aten.full.default: _full,
        _aten.scalar_tensor.default: _scalar_tensor,
        _aten.constant_pad_nd.default: _constant_pad,
    }
    with decomposition_table.added(ours):
        yield


def _is_complex(*values: Any) -> bool:
    return any(
        value.is_complex() if isinstance(value, Tensor) else isinstance(value, complex)
        for value in values
    )


def _sub(x: Any, y: Any, *, alpha: Any = 1) -> Any:
    if not _is_complex(x, y):
        return NotImplemented
    return x + (-y if alpha == 1 else -alpha * y)


def _product(multiply: Callable[[Tensor, Tensor], Tensor]) -> Callable[..., Any]:
    def decompose(x: Tensor, a: Tensor, b: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Any:
        if not _is_complex(x):
            return NotImplemented
        product = multiply(a, b)
        product = product if alpha == 1 else product * alpha
        return product if beta == 0 else product + (x if beta == 1 else x * beta)

    return decompose


def _full(size: Any, value: Any, *, dtype: torch.dtype | None = None, **options: Any) -> Any:
    if not (dtype.is_complex if dtype is not None else isinstance(value, complex)):
        return NotImplemented
    parts = {torch.complex64: torch.float32, torch.complex128: torch.float64}
    part = parts.get(torch.complex64 if dtype is None else dtype)
    if part is None:
        return NotImplemented
    real, imaginary = (
        torch.full(size, number, dtype=part, device=options.get("device"))
        for number in (complex(value).real, complex(value).imag)
    )
    return torch.complex(real, imaginary)


def _scalar_tensor(value: Any, **options: Any) -> Any:
    return _full((), value, **options)


def _constant_pad(x: Tensor, pad: Any, value: Any = 0) -> Any:
    if not _is_complex(x):
        return NotImplemented
    number = complex(value)
    parts = torch.view_as_real(x.resolve_conj())
    real, imaginary = (
        _aten.constant_pad_nd.default(parts.select(-1, i), pad, part)
        for i, part in enumerate((number.real, number.imag))
    )
    return torch.complex(real, imaginary)


def resolve_outputs(module: torch.fx.GraphModule) -> None:
    """Copies complex outputs that may be views.

    ``conj()`` returns a view that only marks the tensor as conjugated: code that reads the memory
    would not see the mark.
    """
    aliasing.copy_outputs(module, _may_be_view)


def _may_be_view(node: torch.fx.Node) -> bool:
    if not _is_complex(node.meta.get("val")):
        return False
    op = node.target
    if not isinstance(op, torch._ops.OpOverload):
        return True
    views = any(result.alias_info is not None for result in op._schema.returns)
    return views or aliasing.is_composite(node)
