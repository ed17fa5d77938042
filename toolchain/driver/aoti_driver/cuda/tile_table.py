"""The tiles of matrix products by architecture, size of a number, and number of rows.

None of it was measured: the reasons are the architectures' shared memory and units. A tuning file
(tuning_file.py) replaces the table for the products of a model that were measured.
"""

from __future__ import annotations

from aoti_driver.contract.tiles import Tile
from aoti_driver.cuda.archs import Arch

# Products of at most so many rows have a kernel of their own. 16: one row of matrix units, as for
# the tokens of a few sequences; the time goes into reading the other operand. 128: too few rows
# for the largest tiles.
BORDERS = (16, 128)

# A number of rows for which nothing but the rate of computation counts.
MANY = 1 << 16

# Deep tiles with many stages: few blocks must have much of the other operand on its way.
_FEW_ROWS = Tile(16, 64, 128, 4, 4)
# Half of the work of the largest tiles in a block, for more blocks.
_SOME_ROWS = Tile(64, 64, 64, 3, 4)

# Numbers of 2 bytes or 1 are computed by matrix units: a large tile reads little for its results.
_MATRIX_UNITS = {
    # Turing copies to shared memory through registers: a third stage would only take memory.
    75: Tile(128, 64, 32, 2, 4),
    # 164 KiB of shared memory: 4 stages of 32 KiB.
    80: Tile(128, 128, 64, 4, 8),
    # 99 KiB: half as deep.
    86: Tile(128, 128, 32, 4, 8),
    89: Tile(128, 128, 32, 4, 8),
    # 227 KiB, and twice the rate of matrix units per byte that is read: a larger tile.
    90: Tile(128, 256, 64, 4, 8),
    100: Tile(128, 256, 64, 4, 8),
    120: Tile(128, 128, 32, 4, 8),
}

# Numbers of 4 bytes are computed by ordinary units, at a sixteenth of the rate on an A100: smaller
# tiles keep them busy, and leave registers for operands.
_FEW_ROWS_OF_4_BYTES = Tile(16, 32, 64, 3, 2)
_ORDINARY_UNITS = Tile(64, 64, 32, 3, 4)
# Of 8 bytes: operands take twice the registers.
_FEW_ROWS_OF_8_BYTES = Tile(16, 32, 32, 3, 2)
_DOUBLE_PRECISION = Tile(32, 32, 32, 3, 4)

# Convolutions of float64 and of integers: a block multiplies 16 x 16 x 16 numbers at a time, 32 in
# the registers of each thread.
WITHOUT_UNITS = Tile(16, 16, 16, 1, 4)


def tile(arch: Arch, element_bytes: int, rows: int) -> Tile:
    """For the architecture, numbers of so many bytes, and products of so many rows at most."""
    few, some = BORDERS
    if element_bytes > 4:
        return _FEW_ROWS_OF_8_BYTES if rows <= few else _DOUBLE_PRECISION
    if element_bytes > 2:
        return _FEW_ROWS_OF_4_BYTES if rows <= few else _ORDINARY_UNITS
    if rows <= few:
        return _FEW_ROWS
    return _SOME_ROWS if rows <= some else _MATRIX_UNITS[arch.capability]


def smallest_k(element_bytes: int) -> int:
    """Matrix units take 32 numbers of 1 byte at a time, and 16 of 2."""
    return 32 if element_bytes == 1 else 16


# What NAME.tune measures beside the table's own: each at least twice as large or as deep as
# another, so that few cover much.
MEASURED = (
    Tile(16, 32, 64, 4, 2),
    Tile(16, 64, 64, 4, 4),
    Tile(16, 128, 128, 3, 4),
    Tile(32, 32, 64, 3, 4),
    Tile(32, 64, 64, 3, 4),
    Tile(32, 128, 64, 3, 4),
    Tile(64, 32, 32, 4, 4),
    Tile(64, 64, 32, 3, 4),
    Tile(64, 64, 64, 4, 8),
    Tile(64, 128, 32, 4, 4),
    Tile(64, 128, 64, 3, 8),
    Tile(128, 64, 32, 4, 8),
    Tile(128, 64, 64, 3, 4),
    Tile(128, 128, 32, 3, 4),
    Tile(128, 128, 64, 3, 8),
    Tile(128, 256, 64, 3, 8),
    Tile(256, 64, 32, 4, 8),
    Tile(256, 128, 64, 3, 8),
)
