"""Operators that Inductor has no kernel for, as operators that it has kernels for."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from aoti_driver.cuda import (
    layers,
    long_sorts,
    medians,
    operators,
    plain_products,
    random_numbers,
    scatters,
)
from aoti_driver.torch_internals import patching

_ALL: dict[str, Callable[..., Any]] = {
    **layers.DECOMPOSITIONS,
    **long_sorts.DECOMPOSITIONS,
    **medians.DECOMPOSITIONS,
    **plain_products.DECOMPOSITIONS,
    **random_numbers.DECOMPOSITIONS,
    **scatters.DECOMPOSITIONS,
}


@contextlib.contextmanager
def added() -> Iterator[None]:
    """Adds them to Inductor's, which take what they don't implement."""
    from torch._inductor.decomposition import fast_random_decomps

    own = "torch._inductor.decomposition:decompositions"
    # They come first where both have one; that of bernoulli returns bool.
    random = "torch._decomp.decompositions_for_rng:extra_random_decomps"
    ours = {operators.find(name): function for name, function in _ALL.items()}
    draws = {operators.find(name): f for name, f in random_numbers.DECOMPOSITIONS.items()}
    try:
        with (
            patching.entries_kept(own, ours) as table,
            patching.entries_kept(random, draws) as of_random,
        ):
            table.update({op: _or(function, table.get(op)) for op, function in ours.items()})
            of_random.update(draws)
            fast_random_decomps.cache_clear()  # a copy of the table
            yield
    finally:
        fast_random_decomps.cache_clear()


def _or(first: Callable[..., Any], second: Callable[..., Any] | None) -> Callable[..., Any]:
    def decompose(*args: Any, **kwargs: Any) -> Any:
        result = first(*args, **kwargs)
        return second(*args, **kwargs) if result is NotImplemented and second else result

    return decompose
