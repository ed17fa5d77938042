"""The choice of a tile for attention, from the sizes, the dtype and the architectures."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from aoti_driver.cuda.archs import Arch

_LEAST = 16  # matrix units multiply no smaller tiles
_BARRIERS = 1024


@dataclasses.dataclass(frozen=True)
class Tile:
    """A block has so many rows, and goes through so many keys at a time.

    stages: the steps whose keys and values are in shared memory together. warps: of a block.
    """

    rows: int
    keys: int
    stages: int
    warps: int

    def shared_bytes(self, width: int, value_width: int, element_bytes: int) -> int:
        """Of the queries, or of the shares of the keys' values, and of keys and values."""
        read = self.keys * (width + value_width) * self.stages
        return (self.rows * max(width, self.keys) + read) * element_bytes + _BARRIERS


# Triton has no matrix units of architectures before this one: a kernel would be large and slow.
_FIRST_ARCH = 80


def choose(
    rows: tuple[int, int], width: int, value_width: int, element_bytes: int, archs: Sequence[Arch]
) -> Tile | None:
    """rows: the least and the most of them. None if an architecture is too old, or no tile fits
    into the shared memory of all.
    """
    if any(arch.capability < _FIRST_ARCH for arch in archs):
        return None
    least, most = rows
    wide = max(width, value_width) > 128
    if element_bytes == 2:
        tiles = [
            Tile(128, 64, 3, 8),
            Tile(64, 64, 3, 4),
            Tile(64, 64, 2, 4),
            Tile(64, 32, 2, 4),
            Tile(64, 32, 1, 4),
        ]
        if wide:
            del tiles[:2]
        elif least < 128:
            del tiles[0]
    elif wide:
        # Ordinary units multiply float32, in code that grows with the tile.
        tiles = [Tile(32, 16, 1, 4)]
    else:
        tiles = [Tile(32, 32, 2, 4), Tile(32, 32, 1, 4)]
    shared = min(arch.shared_bytes for arch in archs)
    fitting = [t for t in tiles if t.shared_bytes(width, value_width, element_bytes) <= shared]
    if not fitting:
        return None
    needed = max(_LEAST, 1 << max(most - 1, 0).bit_length())
    return dataclasses.replace(fitting[0], rows=min(fitting[0].rows, needed))
