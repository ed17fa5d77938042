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
    volumes,
    windows,
)
from aoti_driver.torch_internals import decomposition_table, patching

_ALL: dict[str, Callable[..., Any]] = {
    **layers.DECOMPOSITIONS,
    **long_sorts.DECOMPOSITIONS,
    **medians.DECOMPOSITIONS,
    **plain_products.DECOMPOSITIONS,
    **random_numbers.DECOMPOSITIONS,
    **scatters.DECOMPOSITIONS,
    **volumes.DECOMPOSITIONS,
    **windows.DECOMPOSITIONS,
}


@contextlib.contextmanager
def added() -> Iterator[None]:
    """Adds them to Inductor's, which take what they don't implement."""
    # They come first where both have one; that of bernoulli returns bool.
    random = "torch._decomp.decompositions_for_rng:extra_random_decomps"
    ours = {operators.find(name): function for name, function in _ALL.items()}
    draws = {operators.find(name): f for name, f in random_numbers.DECOMPOSITIONS.items()}
    with patching.entries_kept(random, draws) as of_random:
        of_random.update(draws)
        with decomposition_table.added(ours):
            yield
