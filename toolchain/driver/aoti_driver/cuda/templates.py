"""Makes Inductor take Triton templates for products and convolutions, without timing them."""

from __future__ import annotations

import ast
import contextlib
import math
from collections.abc import Iterator, Sequence
from typing import Any

from aoti_driver.base.errors import DriverError
from aoti_driver.cuda import tiles
from aoti_driver.cuda.archs import Arch
from aoti_driver.torch_internals import patching


@contextlib.contextmanager
def chosen(archs: Sequence[Arch]) -> Iterator[None]:
    def select(
        _: Any, name: str, choices: Any, inputs: Any, layout: Any, *__: Any, **___: Any
    ) -> Any:
        return _select(name, choices, inputs, layout, archs)

    place = "torch._inductor.select_algorithm:AlgorithmSelectorCache.__call__"
    with patching.replaced({place: select}):
        yield


def _select(name: str, choices: Any, inputs: Any, layout: Any, archs: Sequence[Arch]) -> Any:
    """The chosen node and what made it, which Inductor keeps."""
    from torch._inductor import select_algorithm

    offered = [c for c in choices if isinstance(c, select_algorithm.TritonTemplateCaller)]
    choice: Any
    number = tiles.choose([_tile(c) for c in offered], _product(name, inputs, layout), archs)
    if number is not None:
        choice = offered[number]
    else:
        # Such as a product that Inductor writes as a sum.
        own = [c for c in choices if not isinstance(c, select_algorithm.ExternKernelCaller)]
        if not own:
            raise DriverError(f"Triton has no kernel for {name}({_described(inputs)}) on GPUs")
        choice = own[0]
    return choice.output_node(), choice


def _tile(choice: Any) -> tiles.Tile:
    facts = choice.info_dict()
    m, k, n = ast.literal_eval(str(facts["tile_shape"]))
    return tiles.Tile(m, n, k, facts["num_stages"], facts["num_warps"])


def _product(name: str, inputs: Any, layout: Any) -> tiles.Product:
    from torch._inductor.virtualized import V

    def sizes(of: Any) -> list[int]:
        return [int(V.graph.sizevars.optimization_hint(size)) for size in of]

    result = sizes(layout.size)
    element = layout.dtype.itemsize
    if name == "convolution":
        weight = sizes(inputs[1].get_size())
        pixels = result[0] * math.prod(result[2:])
        return tiles.Product(pixels, weight[0], math.prod(weight[1:]), element)
    *batch, m, n = result
    return tiles.Product(m, n, sizes(inputs[-1].get_size())[-2], element, math.prod(batch))


def _described(inputs: Any) -> str:
    return ", ".join(f"{node.get_dtype()}{list(node.get_size())}" for node in inputs)
