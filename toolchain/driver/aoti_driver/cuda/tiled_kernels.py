"""Gives the kernel of a product other tiles than Inductor's, one for each class of its rows.

Inductor writes a template's kernel for one tile, as constants at its beginning. Here it writes the
kernel for the first tile of a plan; the others are the same text with other constants. The launch
chooses among them by the number of rows (launches.py).
"""

from __future__ import annotations

import ast
import contextlib
import dataclasses
import functools
import math
import re
from collections.abc import Iterator, Sequence
from typing import Any

from aoti_driver.contract.tiles import Tile
from aoti_driver.torch_internals import patching

_KERNEL = "torch._inductor.select_algorithm:TritonTemplateKernel"
_SIDES = ("BLOCK_M", "BLOCK_N", "BLOCK_K")

# The plan's place among the constants of a template, from which Inductor writes it into the
# kernel's source.
_PLAN = "AOTI_PLAN"


@dataclasses.dataclass(frozen=True)
class Plan:
    """The kernels of a product: see contract/tiles.py.

    rows: which sizes of the result are multiplied to the number of rows. depth: K, if it is always
    the same. measured: not the rows choose a kernel, but who measures the program.
    """

    key: str
    element_bytes: int
    tiles: tuple[Tile, ...]
    tuned: bool
    rows: tuple[int, ...]
    depth: int | None
    measured: bool = False

    @property
    def has_choice(self) -> bool:
        return self.measured or len(self.tiles) > 1


def has_tile(choice: Any) -> bool:
    """Whether a template computes in tiles of three sides."""
    sides = ast.literal_eval(str(choice.info_dict()["tile_shape"]))
    return all(side > 0 for side in sides)


def retarget(choice: Any, plan: Plan) -> None:
    """Inductor will write the chosen template's kernel for the plan's first tile."""
    make = choice.make_kernel_render

    def make_for_tile(*args: Any, **kwargs: Any) -> Any:
        kernel, render = make(*args, **kwargs)
        (template, constants), tile = render.args, plan.tiles[0]
        constants = {**constants, **_constants(tile)}
        if "EVEN_K" in constants:
            constants["EVEN_K"] = plan.depth is not None and all(
                plan.depth % each.k == 0 for each in plan.tiles
            )
        patching.replace_on(kernel, f"{_KERNEL}.meta", {**constants, _PLAN: _written(plan)})
        patching.replace_on(kernel, f"{_KERNEL}.defines", _defines(kernel.defines, constants))
        patching.replace_on(kernel, f"{_KERNEL}.num_stages", tile.stages)
        patching.replace_on(kernel, f"{_KERNEL}.num_warps", tile.warps)
        return kernel, functools.partial(kernel.render, template, constants)

    patching.replace_on(
        choice,
        "torch._inductor.select_algorithm:TritonTemplateCaller.make_kernel_render",
        make_for_tile,
    )


def _constants(tile: Tile) -> dict[str, int]:
    return dict(zip(_SIDES, (tile.m, tile.n, tile.k), strict=True))


def _defines(text: str, constants: dict[str, Any]) -> str:
    """The lines that define a kernel's constants, with the values of these."""
    for name, value in constants.items():
        text = re.sub(
            rf"^{name} : tl\.constexpr = .*$", f"{name} : tl.constexpr = {value}", text, flags=re.M
        )
    return text


def _written(plan: Plan) -> str:
    """As a text of Python, since Inductor writes a template's constants into the source."""
    return repr(dataclasses.astuple(plan))


def plan_of(constants: dict[str, Any]) -> Plan | None:
    """constants: those of a kernel's template, as ``inductor_meta`` has them."""
    if _PLAN not in constants:
        return None
    key, element_bytes, tiles, *rest = ast.literal_eval(constants[_PLAN])
    return Plan(key, element_bytes, tuple(Tile(*tile) for tile in tiles), *rest)


def source_for(source: str, tile: Tile) -> str:
    """The source of a plan's kernel for another of its tiles."""
    numbers = {"num_stages": tile.stages, "num_warps": tile.warps}
    changes = [
        *(
            (rf"^( +{name} : tl\.constexpr = )\d+$", value)
            for name, value in _constants(tile).items()
        ),
        *((rf"^( *{name}=)\d+(?=,$)", value) for name, value in numbers.items()),
    ]
    for pattern, value in changes:
        source, count = re.subn(pattern, rf"\g<1>{value}", source, flags=re.M)
        if count != 1:
            raise AssertionError(f"the kernel of a template has {count} lines {pattern}")
    return source


@contextlib.contextmanager
def launched_by_rows() -> Iterator[None]:
    """Calls of a kernel with a plan pass the number of rows, and the grid of each of its tiles."""
    place = f"{_KERNEL}.additional_call_args_and_types"
    arguments = patching.original(place)

    def rows_and_grids(kernel: Any) -> Any:
        plan = plan_of(kernel.meta)
        if plan is None or not plan.has_choice:
            return arguments(kernel)
        values = [math.prod(kernel.call_sizes[number] for number in plan.rows)]
        for tile in plan.tiles:
            meta = {**kernel.meta, **_constants(tile)}
            values.extend(kernel.grid_fn.sympy_call(*kernel.call_sizes, meta))
        return values, map(type, values)

    with patching.replaced({place: rows_and_grids}):
        yield


def launch(plan: Plan) -> dict[str, Any]:
    """What the function that launches the kernels must know, as ``inductor_meta`` has it."""
    tiles = range(len(plan.tiles))
    grids = [[f"_grid_{3 * number + axis}" for number in tiles] for axis in range(3)]
    return {
        "extra_launcher_args": ["_rows", *(f"_grid_{n}" for n in range(3 * len(plan.tiles)))],
        "fixed_grid": [chosen(plan, values) for values in grids],
    }


def chosen(plan: Plan, values: Sequence[str]) -> str:
    """The C++ expression of the value for the tile that the number of rows chooses."""
    *others, last = values
    if plan.measured:
        count = len(plan.tiles)
        conditions = [f"::aoti::cuda::MeasuredOf({count}) == {n}" for n in range(count - 1)]
    else:
        conditions = [f"_rows <= {tile.rows}" for tile in plan.tiles[:-1]]
    choices = [f"{c} ? {value} : " for c, value in zip(conditions, others, strict=True)]
    return f"({''.join(choices)}{last})" if choices else last
