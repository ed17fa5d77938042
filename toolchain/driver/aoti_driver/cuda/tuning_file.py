"""Tuning files: the tiles of a model's products, as they were measured on GPUs.

``bazel run NAME.tune`` writes the file, and codegen reads it.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Sequence
from pathlib import Path

from aoti_driver.base.errors import DriverError, did_you_mean, listed
from aoti_driver.contract import json_records
from aoti_driver.contract.tiles import Tile
from aoti_driver.cuda import tile_table
from aoti_driver.cuda.archs import ARCHS, Arch
from aoti_driver.cuda.tiles import Product

FORMAT = 1


@dataclasses.dataclass(frozen=True)
class Measured:
    """gpu: its name, as the driver says it. products: key -> tiles, in the order of their rows."""

    gpu: str
    products: dict[str, tuple[Tile, ...]]


@dataclasses.dataclass(frozen=True)
class Document:
    """archs: what was measured, by architecture such as "sm_80"."""

    format: int
    archs: dict[str, Measured]


class Tuning:
    """The tiles of one architecture, of which it knows which were asked for.

    measured: the program is one to be measured, with all candidates of each product.
    """

    def __init__(
        self,
        products: dict[str, tuple[Tile, ...]] | None = None,
        where: str = "",
        archs: Sequence[Arch] = (),
        measured: bool = False,
    ) -> None:
        self._products = products or {}
        self._where = where
        self._archs = archs
        self.measured = measured
        self._found: dict[str, None] = {}

    def of(self, product: Product) -> tuple[Tile, ...] | None:
        """None where nothing was measured."""
        key = product.key
        self._found[key] = None
        tiles = self._products.get(key)
        if tiles is not None:
            for number, tile in enumerate(tiles):
                self._check(product, tile, f"{self._where}: {key}[{number}]")
        return tiles

    def refuse_unused(self) -> None:
        """Refuses entries of products that the program doesn't have."""
        for key in self._products:
            if key not in self._found:
                raise DriverError(
                    f'{self._where}: "{key}" is no product of this model'
                    f"{did_you_mean(key, self._found)}; its products are "
                    f"{listed(list(self._found)) or 'none'}. Is the file another model's, or has "
                    "the model changed since? Measure it anew with its target .tune, or remove "
                    "the entry"
                )

    def _check(self, product: Product, tile: Tile, where: str) -> None:
        smallest = tile_table.smallest_k(product.element_bytes)
        for name, size, least in (("m", tile.m, 16), ("n", tile.n, 16), ("k", tile.k, smallest)):
            if size < least or size > 256 or size & (size - 1):
                raise DriverError(
                    f"{where}: {name} is {size}; expected a power of two from {least} to 256"
                )
        if tile.warps not in (1, 2, 4, 8, 16) or not 1 <= tile.stages <= 8:
            raise DriverError(
                f"{where}: {tile.stages} stages, {tile.warps} warps; expected 1 to 8 stages and "
                "1, 2, 4, 8 or 16 warps"
            )
        arch = min(self._archs, key=lambda each: each.shared_bytes)
        needed = tile.shared_bytes(product.element_bytes)
        if needed > arch.shared_bytes:
            raise DriverError(
                f"{where}: a block of {tile} needs {needed} bytes of shared memory, and "
                f"{arch.name} has {arch.shared_bytes}; use a smaller tile or fewer stages, or "
                f"leave {arch.name} out of cuda_archs"
            )


def parse(text: str, where: str) -> Document:
    """where: the file's name, for messages."""
    try:
        document = json_records.build(Document, json.loads(text), where)
    except ValueError as e:  # of JSON too
        reason = str(e) if isinstance(e, json_records.RecordError) else f"{where}: no JSON: {e}"
        raise DriverError(f"{reason}. Write the file with the model's target .tune") from None
    if document.format != FORMAT:
        raise DriverError(f"{where}: format {document.format}; this version reads {FORMAT}")
    for name, measured in document.archs.items():
        if name not in ARCHS:
            raise DriverError(
                f'{where}: unknown architecture "{name}"{did_you_mean(name, ARCHS)}; known are '
                f"{listed(ARCHS)}"
            )
        for key, tiles in measured.products.items():
            _check_rows(tiles, f"{where}: {name}: {key}")
    return document


def _check_rows(tiles: Iterable[Tile], where: str) -> None:
    rows = [tile.rows for tile in tiles]
    bounds = [bound for bound in rows[:-1] if bound is not None]
    if not rows or rows[-1] is not None or len(bounds) != len(rows) - 1:
        raise DriverError(
            f"{where}: expected tiles with rows, the most rows that each is for, and a last one "
            "without"
        )
    if bounds != sorted(set(bounds)) or (bounds and bounds[0] < 1):
        raise DriverError(f"{where}: rows of {bounds}; expected them from the fewest to the most")


def read(path: str, archs: Sequence[Arch]) -> Tuning:
    """What the file says of the lowest of the architectures that it has."""
    where = Path(path).name
    document = parse(Path(path).read_text(encoding="utf-8"), where)
    for arch in archs:
        if arch.name in document.archs:
            return Tuning(document.archs[arch.name].products, f"{where}: {arch.name}", archs)
    raise DriverError(
        f"{where}: measured on {listed(document.archs) or 'nothing'}, but the model's cuda_archs "
        f"are {listed([arch.name for arch in archs])}; run its target .tune on a GPU of one of "
        "these, or remove tuning"
    )


def write(document: Document) -> str:
    return json.dumps(json_records.plain(document), indent=2, sort_keys=True) + "\n"
