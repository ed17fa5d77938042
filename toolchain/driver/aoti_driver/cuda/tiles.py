"""Matrix products, and which tiles compute them: those of a tuning file, or of the table."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from aoti_driver.contract.tiles import Tile
from aoti_driver.cuda import tile_table
from aoti_driver.cuda.archs import Arch


@dataclasses.dataclass(frozen=True)
class Sizes:
    """What one size of a product may be; of a dim without an upper bound, largest is None."""

    smallest: int
    largest: int | None

    @property
    def varies(self) -> bool:
        return self.smallest != self.largest

    def __str__(self) -> str:
        largest = "" if self.largest is None else self.largest
        return f"{self.smallest}..{largest}" if self.varies else str(self.smallest)


def exactly(size: int) -> Sizes:
    return Sizes(size, size)


_ONE = exactly(1)


@dataclasses.dataclass(frozen=True)
class Product:
    """batch independent products of [m, k] and [k, n]; a convolution is one over its pixels, for
    each of its groups.

    taps: in how many equal parts a convolution goes through k. units: whether Triton computes it
    with matrix units, or as if there were some for its dtype.
    """

    operator: str
    m: Sizes
    n: Sizes
    k: Sizes
    dtype: str
    element_bytes: int
    batch: Sizes = _ONE
    taps: int = 1
    units: bool = True

    @property
    def key(self) -> str:
        """What a tuning file calls it: "bmm 4 x [1..64, 16, 8] bfloat16"."""
        batch = "" if self.batch == _ONE else f"{self.batch} x "
        return f"{self.operator} {batch}[{self.m}, {self.n}, {self.k}] {self.dtype}"


def of_table(product: Product, archs: Sequence[Arch]) -> tuple[Tile, ...]:
    """A tile for each class of numbers of rows that the product may have.

    archs: the lowest first; the tiles are chosen for that one, and fit into the shared memory of
    all.
    """
    if not product.units:
        return (tile_table.WITHOUT_UNITS,)
    smallest, largest = product.m.smallest, product.m.largest
    bounds: list[int | None] = [
        bound
        for bound in tile_table.BORDERS
        if smallest <= bound and (largest is None or bound < largest)
    ]
    found: list[Tile] = []
    for bound in [*bounds, None]:
        rows = tile_table.MANY if bound is None and largest is None else bound or largest
        assert rows is not None
        tile = _fitted(product, max(rows, 1), archs)
        if found and dataclasses.replace(found[-1], rows=None) == tile:
            found.pop()
        found.append(dataclasses.replace(tile, rows=bound))
    return tuple(found)


def _fitted(product: Product, rows: int, archs: Sequence[Arch]) -> Tile:
    """The table's tile for so many rows, no larger than the product, and small enough that most
    multiprocessors have a block.
    """
    columns = product.n.largest or tile_table.MANY
    depth = product.k.largest // product.taps if product.k.largest else tile_table.MANY
    batch = product.batch.smallest
    tile = tile_table.tile(archs[0], product.element_bytes, rows)
    smallest_k = tile_table.smallest_k(product.element_bytes)
    m = min(tile.m, _power_of_two(rows))
    n = min(tile.n, _power_of_two(columns))
    k = max(smallest_k, min(tile.k, _power_of_two(depth)))
    # Halves the wider side: a square tile reads the least for its results.
    while batch * _up(rows, m) * _up(columns, n) * 2 <= archs[0].multiprocessors and m * n > 1024:
        m, n = (m // 2, n) if m > n else (m, n // 2)
    stages = tile.stages
    shared = min(arch.shared_bytes for arch in archs)
    fitted = dataclasses.replace(tile, m=m, n=n, k=k)
    while fitted.shared_bytes(product.element_bytes) > shared:
        if fitted.stages > 2:
            fitted = dataclasses.replace(fitted, stages=fitted.stages - 1)
        elif fitted.k > smallest_k:
            fitted = dataclasses.replace(fitted, k=fitted.k // 2, stages=stages)
        else:
            fitted = dataclasses.replace(fitted, m=max(16, fitted.m // 2), n=max(16, fitted.n // 2))
    # A warp has at least one piece of 16 x 16 results.
    return dataclasses.replace(fitted, warps=max(1, min(tile.warps, m * n // 256)))


def candidates(product: Product, archs: Sequence[Arch]) -> tuple[Tile, ...]:
    """The tiles to measure for a product; the table's come first."""
    if not product.units:
        return (tile_table.WITHOUT_UNITS,)
    shared = min(arch.shared_bytes for arch in archs)
    smallest_k = tile_table.smallest_k(product.element_bytes)
    largest = [
        _power_of_two(size.largest or tile_table.MANY) for size in (product.m, product.n, product.k)
    ]
    found = [dataclasses.replace(tile, rows=None) for tile in of_table(product, archs)]
    for tile in tile_table.MEASURED:
        m, n, k = (min(own, size) for own, size in zip((tile.m, tile.n, tile.k), largest))
        warps = max(1, min(tile.warps, m * n // 256))
        fitted = Tile(m, n, max(k, smallest_k), tile.stages, warps)
        if fitted.shared_bytes(product.element_bytes) <= shared:
            found.append(fitted)
    return tuple(dict.fromkeys(found))


def _power_of_two(size: int) -> int:
    """The smallest tile side that covers the size; matrix units compute 16 x 16 at least."""
    return max(16, 1 << (size - 1).bit_length()) if size > 0 else 16


def _up(value: int, unit: int) -> int:
    return -(-value // unit)
