"""Refuses programs for GPUs that call operators as functions: only generated kernels run there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from aoti_driver.artifacts.missing_functions import Missing, find_missing
from aoti_driver.base.errors import DriverError
from aoti_driver.contract.code_parts import Shim
from aoti_driver.contract.source_locations import Location
from aoti_driver.cuda.sort_limits import SORTS

# Of the slim runtime's functions, those that compute read the memory of the CPU.
_COMPUTING = ("aoti_torch_cpu_", "aoti_slim_op_")
# Draws the seeds of random numbers, which are then copied to the device: cuda/random_numbers.py.
_SEEDS = "aoti_torch_cpu_randint_low_out"


def check(
    label: str,
    mode: str,
    shims: Sequence[Shim],
    functions: set[str],
    locations: Mapping[str, Location],
) -> None:
    """DriverError if the program needs more than kernels and the slim runtime's memory."""
    if mode == "libtorch":
        raise DriverError(
            f'{label}: shim = "libtorch": programs for GPUs (device = "cuda") run on the slim '
            'runtime alone; use shim = "auto" or "slim", or device = "cpu"'
        )
    usable = {name for name in functions if name == _SEEDS or not name.startswith(_COMPUTING)}
    if missing := find_missing(shims, usable, {}, locations):
        raise DriverError(_refused(label, missing))


def _refused(label: str, missing: Sequence[Missing]) -> str:
    operators = [name for m in missing for name in m.operators]
    example = operators[0] if operators else "aten.<operator>.default"
    listing = "\n".join(map(str, missing))
    rows = ""
    if any(operator in SORTS for operator in operators):
        rows = (
            "Rows are sorted in kernels if the most elements of a row are known; if the row's "
            "length is a dim, give it an upper bound in dynamic_dims. "
        )
    return (
        f'{label}: device = "cuda": these operators have no kernel for GPUs:\n{listing}\n'
        f"{rows}Have them replaced by simpler ones if PyTorch can "
        f'(decompositions = ["{example}"]), write them as an operator of your own '
        '(torch_triton_ops), or build the model for device = "cpu"'
    )
