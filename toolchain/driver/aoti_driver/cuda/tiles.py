"""The choice of a tile for a matrix product or a convolution.

Inductor's templates exist in many sizes; it would time them on the device. Here the choice follows
from the sizes, the dtype and the architectures, so every build makes the same.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from aoti_driver.cuda.archs import Arch

# A block starts and ends in about the time of so many steps over K.
_BLOCK_STEPS = 2
# Numbers that a thread accumulates; with more, it would store them in memory.
_ACCUMULATED = 128
# The multiply-adds of a multiprocessor per byte that it reads: for numbers of 2 bytes its matrix
# units compute, for larger ones its ordinary units.
_WORK_PER_BYTE = {1: 64, 2: 32, 4: 8, 8: 4}


@dataclasses.dataclass(frozen=True)
class Tile:
    """A block computes m x n results, and reads k columns and rows at a time.

    stages: the steps whose operands are in shared memory together. warps: of a block.
    """

    m: int
    n: int
    k: int
    stages: int
    warps: int

    def shared_bytes(self, element_bytes: int) -> int:
        return (self.m + self.n) * self.k * element_bytes * max(self.stages - 1, 1)


@dataclasses.dataclass(frozen=True)
class Product:
    """Sizes of a product; of those that vary, the ones of the sample. batch: independent ones."""

    m: int
    n: int
    k: int
    element_bytes: int
    batch: int = 1


def choose(tiles: Sequence[Tile], product: Product, archs: Sequence[Arch]) -> int | None:
    """The index of the tile that takes the least time on the first architecture by an estimate.

    None if no tile fits into the shared memory of all architectures.
    """
    shared = min(arch.shared_bytes for arch in archs)
    fitting = [
        number
        for number, tile in enumerate(tiles)
        if tile.shared_bytes(product.element_bytes) <= shared
    ]
    if not fitting:
        return None
    return min(fitting, key=lambda number: (_cost(tiles[number], product, archs[0]), number))


def _cost(tile: Tile, product: Product, arch: Arch) -> float:
    blocks = _up(product.m, tile.m) * _up(product.n, tile.n) * product.batch
    steps = _up(product.k, tile.k)
    work = tile.m * tile.n * tile.k / _WORK_PER_BYTE[product.element_bytes]
    read = (tile.m + tile.n) * tile.k * product.element_bytes
    # Few stages leave the units waiting for memory.
    waiting = 1 + 1 / tile.stages
    spilled = max(1.0, tile.m * tile.n / (32 * tile.warps) / _ACCUMULATED)
    step = max(work / product.element_bytes, read) * waiting * spilled
    at_once = arch.multiprocessors * max(1, min(4, 16 // tile.warps))
    waves = _up(blocks, at_once)
    busy = min(blocks, at_once) / arch.multiprocessors
    return waves * max(busy, 1.0) * (steps + _BLOCK_STEPS) * step


def _up(value: int, unit: int) -> int:
    return -(-value // unit)
