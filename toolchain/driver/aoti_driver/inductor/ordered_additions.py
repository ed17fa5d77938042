"""Adds to the places that an index tensor names in the order of the loop, without atomic additions.

For index_add and index_put(accumulate=True), Inductor writes loops whose threads add
to the same places with atomic instructions. So the last bits of a sum depend on which thread comes
first. Here each place belongs to one thread, which adds to it in the order of the loop: a nest is
split only over loops of which each step has places of its own, such as those over columns.
"""

from __future__ import annotations

import contextlib
import importlib
import math
from collections.abc import Iterator
from typing import Any

import sympy

from aoti_driver.torch_internals import patching

_CPP = "torch._inductor.codegen.cpp"


@contextlib.contextmanager
def written() -> Iterator[None]:
    """Makes Inductor write these additions."""
    cpp: Any = importlib.import_module(_CPP)
    common: Any = importlib.import_module("torch._inductor.codegen.common")
    scalar = patching.original(f"{_CPP}:CppKernel.store")
    vector = patching.original(f"{_CPP}:CppVecKernel.store")
    tile = patching.original(f"{_CPP}:CppTile2DKernel.store")
    fuse = patching.original(f"{_CPP}:CppScheduling._can_fuse_horizontal_impl")
    fuse_outer = patching.original(f"{_CPP}:CppScheduling._get_outer_loop_fusion_depth")

    def store(kernel: Any, name: str, index: Any, value: Any, mode: Any = None) -> None:
        if mode != "atomic_add":
            scalar(kernel, name, index, value, mode)
            return
        _note(kernel, name, index)
        place = f"{kernel.args.output(name)}[{cpp.cexpr_index(kernel.rename_indexing(index))}]"
        dtype = cpp.DTYPE_TO_CPP[_dtype(name)]
        line = f"{place} += static_cast<{dtype}>({value});"
        kernel.stores.writeline(common.DeferredLine(name, line))

    def add_vector(kernel: Any, name: str, index: Any, value: Any) -> None:
        # If each element has an address of its own, this adds one element after the other.
        value = value if value.is_vec else kernel.broadcast(value)
        index, array = kernel.rename_indexing(index), kernel.args.output(name)
        lines = kernel._get_store_line(value, array, index, _dtype(name), accu_store=True)
        kernel.stores.splice(lines.map(lambda line: common.DeferredLine(name, line)))

    def store_vector(kernel: Any, name: str, index: Any, value: Any, mode: Any = None) -> None:
        if mode != "atomic_add":
            vector(kernel, name, index, value, mode)
            return
        _note(kernel, name, index)
        add_vector(kernel, name, index, value)

    def store_tile(kernel: Any, name: str, index: Any, value: Any, mode: Any = None) -> None:
        if mode != "atomic_add":
            tile(kernel, name, index, value, mode)
            return
        _note(kernel, name, index)
        # Not through a transposed copy of the tile, which torch adds to memory atomically.
        index = kernel.transform_indexing(kernel.rename_indexing(index))
        add_vector(kernel, name, index, value)

    def may_fuse(scheduling: Any, node1: Any, node2: Any) -> bool:
        # Such a nest could not be split: not over rows, which may add to the same place, and not
        # over columns, which are parts of one sum.
        if (_adds(node1) or _adds(node2)) and (node1.is_reduction() or node2.is_reduction()):
            return False
        return bool(fuse(scheduling, node1, node2))

    def depth(scheduling: Any, node1: Any, node2: Any) -> int:
        return 0 if _adds(node1) or _adds(node2) else int(fuse_outer(scheduling, node1, node2))

    with patching.replaced(
        {
            f"{_CPP}:CppScheduling._can_fuse_horizontal_impl": may_fuse,
            f"{_CPP}:CppScheduling._get_outer_loop_fusion_depth": depth,
            f"{_CPP}:CppKernel.store": store,
            f"{_CPP}:CppVecKernel.store": store_vector,
            f"{_CPP}:CppTile2DKernel.store": store_tile,
        }
    ):
        yield


def splittable(kernel: Any) -> set[sympy.Symbol] | None:
    """The variables of the loops that may be split over threads; None: there are no additions.

    kernel: a CppKernelProxy. Its variants, such as vectors and the end of a loop, run in turn.
    """
    sets: list[set[sympy.Symbol]] = []
    for variant in kernel.kernels:
        indices: dict[str, sympy.Expr] = {}
        for array, index, found in getattr(variant, "aoti_additions", ()):
            # One thread's places may be another's by another index.
            sets.append(found if indices.setdefault(array, index) == index else set())
    return set.intersection(*sets) if sets else None


def _adds(node: Any) -> bool:
    """Whether a node of the scheduler, or one that is fused in it, adds to places."""
    data = (getattr(part.node, "data", None) for part in node.get_nodes())
    return any(getattr(scatter, "scatter_mode", None) == "atomic_add" for scatter in data)


def _dtype(name: str) -> Any:
    virtualized: Any = importlib.import_module("torch._inductor.virtualized")
    return virtualized.V.graph.get_dtype(name)


def _note(kernel: Any, name: str, index: sympy.Expr) -> None:
    """Notes the variables of which each value has places of its own."""
    ranges = dict(zip(kernel.itervars, kernel.call_ranges, strict=True))
    found = {variable for variable in ranges if places_differ(index, variable, ranges)}
    note = (kernel.args.output(name), index, found)
    kernel.aoti_additions = [*getattr(kernel, "aoti_additions", ()), note]


def places_differ(
    index: sympy.Expr, variable: sympy.Symbol, ranges: dict[sympy.Symbol, sympy.Expr]
) -> bool:
    """Whether steps with other values of the variable always have another index, whatever else they
    differ in.

    ranges: the variables of the loops, with their numbers of steps. Of what an index tensor says,
    nothing is known but that it is an integer.

    The index is ``low + stride * variable + high`` (and a constant). If ``high`` is a multiple of
    a number that is at least ``stride * steps``, and ``0 <= low < stride``, then the remainder of
    a division by that number determines the variable.
    """
    strides: list[sympy.Expr] = []
    others: list[tuple[sympy.Expr, sympy.Expr]] = []
    for term in sympy.Add.make_args(sympy.expand(index)):
        factor, rest = _factors(term)
        if rest == variable:
            strides.append(factor)
        elif not rest.is_integer:
            return False
        elif rest != 1:
            others.append((factor, rest))
    if len(strides) != 1 or not strides[0].is_positive:
        return False
    stride, low, highs = strides[0], sympy.Integer(0), []
    span = stride * ranges[variable]
    for factor, rest in others:
        if sympy.cancel(factor / span).is_integer or (
            factor.is_number and span.is_number and abs(factor) >= span
        ):
            highs.append(factor)
        elif rest in ranges and (factor >= 0) == True:  # noqa: E712, it may be undecided
            low += factor * (ranges[rest] - 1)
        else:
            return False
    if low != 0 and (low < stride) != True:  # noqa: E712
        return False
    if all(factor.is_number for factor in highs) and span.is_number:
        return not highs or math.gcd(*map(int, highs)) >= span
    return all(sympy.cancel(factor / span).is_integer for factor in highs)


def _factors(term: sympy.Expr) -> tuple[sympy.Expr, sympy.Expr]:
    """The product of the term's numbers and sizes, and the rest."""
    symbol: Any = importlib.import_module("torch.utils._sympy.symbol")
    kinds = (symbol.SymT.SIZE, symbol.SymT.UNBACKED_INT, symbol.SymT.PRECOMPUTED_SIZE)
    factor, rest = sympy.Integer(1), sympy.Integer(1)
    for part in sympy.Mul.make_args(term):
        base = part.base if part.is_Pow else part
        size = base.is_Symbol and symbol.symbol_is_type(base, kinds)
        if part.is_Integer or (size and part.is_integer):
            factor *= part
        else:
            rest *= part
    return factor, rest
