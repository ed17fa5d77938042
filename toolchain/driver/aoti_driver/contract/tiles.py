"""The tiles that a GPU computes a matrix product in, as manifests and tuning files have them."""

from __future__ import annotations

import dataclasses

from aoti_driver.base.errors import plural
from aoti_driver.contract import json_records


@dataclasses.dataclass(frozen=True)
class Tile:
    """A block of threads computes m x n results, and reads k columns and rows at a time.

    stages: the steps whose operands are in shared memory together. warps: of a block. rows: the
    kernel is for products of at most so many rows; the last of a product's kernels has no bound.
    """

    m: int
    n: int
    k: int
    stages: int
    warps: int
    rows: int | None = dataclasses.field(default=None, metadata=json_records.OPTIONAL)

    def shared_bytes(self, element_bytes: int) -> int:
        """Of operands in shared memory; Triton needs about as much, or a little more."""
        return (self.m + self.n) * self.k * element_bytes * max(self.stages - 1, 1)

    def __str__(self) -> str:
        parts = f"{plural(self.stages, 'stage')}, {plural(self.warps, 'warp')}"
        rows = "" if self.rows is None else f", up to {plural(self.rows, 'row')}"
        return f"{self.m}x{self.n}x{self.k} ({parts}{rows})"


@dataclasses.dataclass(frozen=True)
class ProductTiles:
    """A matrix product or convolution of a program with its kernels.

    key: what names it in a tuning file, such as "addmm [1..64, 16, 8] float32". kernel: the number
    of its first kernel; there is one for each tile, in this order. tuned: whether the tiles are
    those of a tuning file.
    """

    key: str
    kernel: int
    tiles: tuple[Tile, ...]
    tuned: bool = dataclasses.field(default=False, metadata=json_records.OPTIONAL)
