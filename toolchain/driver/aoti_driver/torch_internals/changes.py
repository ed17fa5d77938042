"""Everything that the driver replaces in PyTorch and Inductor, and the options that it sets."""

from __future__ import annotations

from aoti_driver.torch_internals import cuda_changes, export_changes, inductor_changes
from aoti_driver.torch_internals.entries import Change, Option

CHANGES: tuple[Change, ...] = (
    *export_changes.CHANGES,
    *inductor_changes.CHANGES,
    *cuda_changes.CHANGES,
)
OPTIONS: tuple[Option, ...] = (
    *export_changes.OPTIONS,
    *inductor_changes.OPTIONS,
    *cuda_changes.OPTIONS,
)
