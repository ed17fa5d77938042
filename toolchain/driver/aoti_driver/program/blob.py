"""The weights blob of an AOTI package: the program's constants in the order of its table.

Each row is the whole stored tensor that the constant is a view of, padded to 64 bytes. torch's
loader expects this, because the rows of a blob have no offsets.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from aoti_driver.contract.code_parts import ProgramConstant
from aoti_driver.contract.dtypes import DTYPES
from aoti_driver.contract.manifest import ProgramManifest
from aoti_driver.program.safetensors_header import ALIGNMENT


def blob_rows(
    constants: Sequence[ProgramConstant], program: ProgramManifest
) -> Iterator[tuple[str, int]]:
    """(key of the weights file, bytes with padding) for each constant, in order."""
    stored = {constant.name: constant for constant in program.constants}
    for row in constants:
        tensor = stored[row.source]
        size = math.prod(tensor.shape) * DTYPES[tensor.dtype].bytes
        yield row.source, size + -size % ALIGNMENT


def blob_size(constants: Sequence[ProgramConstant], program: ProgramManifest) -> int:
    return sum(size for _, size in blob_rows(constants, program))
