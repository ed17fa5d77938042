"""Sizes that vary, of which Inductor makes constants.

Some of Inductor's code is for the sizes of the sample alone. Then it guards on them, but no
compiled program checks that: it would be wrong for all other sizes.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import sympy
import torch
from torch.export import ExportedProgram

from aoti_driver.base.errors import DriverError
from aoti_driver.contract.program_parts import Input
from aoti_driver.program import signature
from aoti_driver.torch_internals import patching

_ADAPTIVE_MEAN: Any = torch.ops.aten._adaptive_avg_pool2d
_ADAPTIVE_MAX: Any = torch.ops.aten.adaptive_max_pool2d
_GLU: Any = torch.ops.aten.glu
_CONVOLUTION: Any = torch.ops.aten.convolution

# For each symbol, a size that has no other: its input, its dimension, and what it is.
Places = Mapping[sympy.Symbol, tuple[int, int, sympy.Expr]]


@contextlib.contextmanager
def avoided() -> Iterator[None]:
    """Adaptive pools of sizes that vary, and convolutions of so many groups, are functions of the
    runtime, which know them; glu halves such a size.
    """
    from torch._inductor import lowering
    from torch.utils._sympy.functions import FloorDiv

    lowered = lowering.lowerings
    handler: Any = lowering.fallback_handler

    def pool(op: Any) -> Any:
        written: Any = lowered[op.default]
        called: Any = handler(op.default, add_to_fallback_set=False)

        def lower(x: Any, output_size: Sequence[Any]) -> Any:
            return (called if _vary(x.get_size()[-2:]) else written)(x, output_size)

        return lower

    glu: Any = lowered[_GLU.default]

    def halves(x: Any, dim: int = -1) -> Any:
        size = x.get_size()[dim]
        if not _vary([size]):
            return glu(x, dim)
        half = FloorDiv(size, 2)
        first = lowering.slice_(x, dim, 0, half, clamp=False)
        second = lowering.slice_(x, dim, half, size, clamp=False)
        return lowering.mul(first, lowering.sigmoid(second))

    convolution: Any = lowered[_CONVOLUTION.default]
    called_convolution: Any = handler(_CONVOLUTION.default, add_to_fallback_set=False)

    def convolve(*arguments: Any) -> Any:
        groups = arguments[8]
        return (called_convolution if _vary([groups]) else convolution)(*arguments)

    decompose: Any = torch._inductor.decomposition.decompositions[_ADAPTIVE_MAX.default]

    def maxima(x: torch.Tensor, output_size: Sequence[Any]) -> Any:
        if any(isinstance(size, torch.SymInt) for size in x.shape[-2:]) and {*output_size} != {1}:
            return NotImplemented
        return decompose(x, output_size)

    mine = {
        _ADAPTIVE_MEAN: pool(_ADAPTIVE_MEAN),
        _ADAPTIVE_MAX: pool(_ADAPTIVE_MAX),
        _GLU: halves,
        _CONVOLUTION: convolve,
    }
    with (
        patching.entries_kept(
            "torch._inductor.lowering:lowerings", [op.default for op in mine]
        ) as lowerings,
        patching.entries_kept(
            "torch._inductor.decomposition:decompositions", [_ADAPTIVE_MAX.default]
        ) as decompositions,
    ):
        lowerings.update({op.default: lower for op, lower in mine.items()})
        decompositions[_ADAPTIVE_MAX.default] = maxima
        yield


def _vary(sizes: Sequence[Any]) -> bool:
    return any(not sympy.sympify(size).is_number for size in sizes)


def places(ep: ExportedProgram) -> Places:
    """Before code is generated, after which torch shows the constants."""
    values = signature.placeholders(ep)
    found: dict[sympy.Symbol, tuple[int, int, sympy.Expr]] = {}
    for i, name in enumerate(signature.tensor_inputs(ep)):
        value = values[name]
        for d, size in enumerate(value.shape if isinstance(value, torch.Tensor) else ()):
            if isinstance(size, torch.SymInt) and len(size.node.expr.free_symbols) == 1:
                found.setdefault(*size.node.expr.free_symbols, (i, d, size.node.expr))
    return found


def environment(ep: ExportedProgram) -> Any:
    """What torch knows of the program's sizes: a ShapeEnv; None if no size varies."""
    for value in signature.placeholders(ep).values():
        for size in value.shape if isinstance(value, torch.Tensor) else (value,):
            if isinstance(size, torch.SymInt):
                return size.node.shape_env
    return None


def refuse(
    replaced: Mapping[sympy.Symbol, sympy.Expr],
    known: Places,
    inputs: Sequence[Input],
    label: str,
) -> None:
    """replaced: what torch knows of symbols after code was generated."""
    for symbol, (i, d, size) in known.items():
        value = size.xreplace({symbol: replaced.get(symbol, symbol)})
        if not value.is_Integer:
            continue
        raise DriverError(
            f"{label}: Inductor (torch {torch.__version__}) makes a constant of dim {d} "
            f'({inputs[i].shape[d]}) of input "{inputs[i].path}": its code would be '
            f"right for the size {value} alone. Replace the operator that needs this size in "
            f"forward(), or write {value} for it in `inputs`"
        )
