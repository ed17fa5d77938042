"""Makes Inductor take Triton templates for products and convolutions, without timing them."""

from __future__ import annotations

import contextlib
import dataclasses
import math
from collections.abc import Iterator, Sequence
from typing import Any

from aoti_driver.base.errors import DriverError
from aoti_driver.contract.tiles import Tile
from aoti_driver.cuda import convolutions, tiled_kernels, tiles
from aoti_driver.cuda.archs import Arch
from aoti_driver.cuda.tuning_file import Tuning
from aoti_driver.torch_internals import patching


@contextlib.contextmanager
def chosen(archs: Sequence[Arch], tuning: Tuning) -> Iterator[None]:
    def select(
        _: Any, name: str, choices: Any, inputs: Any, layout: Any, *__: Any, **___: Any
    ) -> Any:
        return _select(name, choices, inputs, layout, archs, tuning)

    place = "torch._inductor.select_algorithm:AlgorithmSelectorCache.__call__"
    with patching.replaced({place: select}), tiled_kernels.launched_by_rows():
        yield


def _select(
    name: str, choices: Any, inputs: Any, layout: Any, archs: Sequence[Arch], tuning: Tuning
) -> Any:
    """The chosen node and what made it, which Inductor keeps."""
    from torch._inductor import select_algorithm

    offered = [
        choice
        for choice in choices
        if isinstance(choice, select_algorithm.TritonTemplateCaller)
        and tiled_kernels.has_tile(choice)
    ]
    if not offered:
        # Such as a product that Inductor writes as a sum.
        own = [c for c in choices if not isinstance(c, select_algorithm.ExternKernelCaller)]
        if not own:
            raise DriverError(f"Triton has no kernel for {name}({_described(inputs)}) on GPUs")
        return own[0].output_node(), own[0]
    choice: Any = offered[0]
    product, rows = _product(name, inputs, layout)
    found: tuple[Tile, ...] | None = tuning.of(product)
    tuned = found is not None
    if tuning.measured:
        found = tiles.candidates(product, archs)
    found = found or tiles.of_table(product, archs)
    if product.taps > 1:
        # With 8 warps, Triton may compile a loop over taps wrongly (triton#1254).
        found = tuple(dataclasses.replace(tile, warps=min(tile.warps, 4)) for tile in found)
    tiled_kernels.retarget(
        choice,
        tiled_kernels.Plan(
            product.key,
            product.element_bytes,
            found,
            tuned=tuned,
            rows=rows,
            depth=product.k.largest if not product.k.varies else None,
            measured=tuning.measured,
        ),
    )
    return choice.output_node(), choice


def _product(name: str, inputs: Any, layout: Any) -> tuple[tiles.Product, tuple[int, ...]]:
    """The product, and the numbers of the sizes of its result whose product is its rows."""
    result = [_sizes(size) for size in layout.size]
    operand = inputs[1 if name.startswith("convolution") else -1].get_dtype()
    dtype, element = str(operand).removeprefix("torch."), operand.itemsize
    if name.startswith("convolution"):
        rows = (0, *range(2, len(result)))
        pixels = _multiplied([result[number] for number in rows])
        groups, columns, channels, taps = _of_group(name, inputs, layout)
        convolution = tiles.Product(
            name,
            pixels,
            tiles.exactly(columns),
            tiles.exactly(channels * taps),
            dtype,
            element,
            tiles.exactly(groups),
            taps=taps,
            units=operand in convolutions.OF_UNITS,
        )
        return convolution, rows
    *batch, m, n = result
    k = _sizes(inputs[-1].get_size()[-2])
    product = tiles.Product(name, m, n, k, dtype, element, _multiplied(batch))
    return product, (len(batch),)


def _of_group(name: str, inputs: Any, layout: Any) -> tuple[int, int, int, int]:
    """Of a convolution: its groups, a group's channels of the result and of the input, its taps."""
    first, second, *kernel = (int(size) for size in inputs[1].get_size())
    taps, channels = math.prod(kernel), int(layout.size[1])
    if name == convolutions.TRANSPOSED:
        groups = channels // second
        return groups, second, first // groups, taps
    groups = int(inputs[0].get_size()[1]) // second
    return groups, channels // groups, second, taps


def _sizes(size: Any) -> tiles.Sizes:
    """What a size may be by the declared dims."""
    from torch._inductor.virtualized import V

    bounds = V.graph.sizevars.shape_env.bound_sympy(V.graph.sizevars.simplify(size))
    largest = int(bounds.upper) if bounds.upper.is_Integer else None  # or infinite
    return tiles.Sizes(int(bounds.lower), largest)


def _multiplied(sizes: Sequence[tiles.Sizes]) -> tiles.Sizes:
    largest = [size.largest for size in sizes]
    return tiles.Sizes(
        math.prod(size.smallest for size in sizes),
        None if None in largest else math.prod(size for size in largest if size is not None),
    )


def _described(inputs: Any) -> str:
    return ", ".join(f"{node.get_dtype()}{list(node.get_size())}" for node in inputs)
