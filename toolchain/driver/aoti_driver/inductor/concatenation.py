"""Convolutions write their results to their places in concatenations.

A U-Net, an Inception or a YOLO concatenates channels of images that convolutions compute. Inductor
would copy each of these images. Here the memory for the result of a concatenation exists from its
first convolution on: that one and the others write to it, and whatever else reads their results
reads them there.
"""

from __future__ import annotations

import contextlib
import operator
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import fx

from aoti_driver.program.graph_nodes import all_arguments, has_dtype, is_only_read, write_anew
from aoti_driver.torch_internals import patching

_CAT: Any = torch.ops.aten.cat.default
_SPLITS: tuple[Any, ...] = (
    torch.ops.aten.chunk.default,
    torch.ops.aten.split.Tensor,
    torch.ops.aten.split_with_sizes.default,
)
# In the metadata of a concatenation: the memory of its result, as Inductor's StorageBox.
_MEMORY = "rules_aoti_memory"


def join(module: fx.GraphModule) -> None:
    """Where all parts of a tensor follow each other in a concatenation, as in ``cat([*x.chunk(2),
    y])``, puts the tensor in their place.
    """
    changed = False
    for cat in module.graph.find_nodes(op="call_function", target=_CAT):
        parts, dim = all_arguments(cat)
        left, joined = [*parts], []
        while left:
            tensor, count = _first_tensor(left, dim)
            joined.append(tensor)
            del left[:count]
        if len(joined) < len(parts):
            cat.args, cat.kwargs = (joined, dim), {}
            changed = True
    write_anew(module, changed)


def _first_tensor(parts: list[fx.Node], dim: int) -> tuple[fx.Node, int]:
    """What the first parts of a concatenation are, and their number."""
    split = parts[0].args[0] if parts[0].target == operator.getitem else None
    if isinstance(split, fx.Node) and split.target in _SPLITS:
        tensor, _, along = all_arguments(split)
        pieces = [(operator.getitem, (split, i)) for i in range(len(split.meta["val"]))]
        given = [(part.target, part.args) for part in parts[: len(pieces)]]
        if given == pieces and (along - dim) % tensor.meta["val"].dim() == 0:
            return tensor, len(pieces)
    return parts[0], 1


def of(node: fx.Node) -> fx.Node | None:
    """The first concatenation of which the node is a part, if the node can be written there."""
    for user in node.users:
        if user.target == _CAT and _is_of_images(user, node):
            fits = is_only_read(node, returned=False) and is_only_read(user, returned=True)
            return user if fits else None
    return None


def layout(x: Any) -> Any:
    """Inductor's layout for the convolution of ``x`` that is lowered: its place in a concatenation,
    or memory of its own, with contiguous channels.
    """
    from torch._inductor import ir
    from torch._inductor.virtualized import V

    node = V.graph.current_node
    cat = of(node)
    if cat is None:
        return contiguous_channels(node, x)
    box = cat.meta.get(_MEMORY)
    if box is None:
        box = cat.meta[_MEMORY] = memory(cat, x)
    parts = all_arguments(cat)[0]
    first = sum(_channels(part) for part in parts[: parts.index(node)])
    storage, place = ir.as_storage_and_layout(_slice(box, first, _channels(node)))
    return ir.NonOwningLayout(ir.ReinterpretView(data=storage, layout=place))


def is_placed(node: Any) -> bool:
    """Whether a node of Inductor's has such a layout."""
    from torch._inductor import ir

    return isinstance(node.layout, ir.NonOwningLayout)


@contextlib.contextmanager
def lowered() -> Iterator[None]:
    """Lets Inductor copy only those parts that aren't in their places already."""
    from torch._inductor.virtualized import V

    with patching.entries_kept("torch._inductor.lowering:lowerings", [_CAT]) as lowerings:
        original = lowerings[_CAT]

        def lower(parts: Sequence[Any], dim: int = 0) -> Any:
            box = V.graph.current_node.meta.get(_MEMORY)
            return original(parts, dim) if box is None else completed(box, parts)

        lowerings[_CAT] = lower
        yield


def completed(box: Any, parts: Sequence[Any]) -> Any:
    """The concatenation of the parts in this memory, to which those are copied, or written if they
    are computed by loops, that aren't there already.
    """
    from torch._inductor import ir
    from torch._inductor.virtualized import V

    buffers, first = [], 0
    for part in parts:
        channels = part.get_size()[1]
        buffer = part.data.data
        if not _is_in(buffer, box):
            buffer = ir.ConcatKernel.realize_into(part, _slice(box, first, channels))
        buffers.append(buffer)
        first += channels
    kernel = box.data
    kernel.inputs = ir.ConcatKernel.unwrap_storage(buffers)
    V.graph.register_operation(kernel)
    return ir.TensorBox(box)


def _is_in(buffer: Any, box: Any) -> bool:
    from torch._inductor import ir

    is_buffer = isinstance(buffer, ir.Buffer)
    return is_buffer and is_placed(buffer) and buffer.layout.view.data is box


def memory(node: fx.Node, like: Any) -> Any:
    """Memory for a concatenation, the node, whose channels are contiguous, as Inductor's
    StorageBox. like: has the device.
    """
    from torch._inductor import ir
    from torch._inductor.virtualized import V

    kernel: Any = ir.ConcatKernel(name=None, layout=contiguous_channels(node, like), inputs=[])
    kernel.name = V.graph.register_buffer(kernel)
    return ir.StorageBox(kernel)


def contiguous_channels(node: fx.Node, like: Any) -> Any:
    """Inductor's layout for the node's value, with contiguous channels."""
    from torch._inductor import ir, utils

    size = utils.convert_shape_to_inductor(node.meta["val"].shape)
    strides = ir.FlexibleLayout.stride_ordered(size, stride_order(len(size)))
    return ir.FixedLayout(like.get_device(), node.meta["val"].dtype, size, strides)


def stride_order(rank: int) -> list[int]:
    """The place of each dim among the strides. The channels have the smallest one."""
    return [rank - 1, 0, *range(rank - 2, 0, -1)]


def _slice(box: Any, first: int, channels: int) -> Any:
    from torch._inductor import ir

    return ir.SliceView.create(box, 1, first, first + channels, clamp=False)


def _is_of_images(cat: fx.Node, part: fx.Node) -> bool:
    parts, dim = all_arguments(cat)
    rank = part.meta["val"].dim()
    if dim not in (1, 1 - rank) or [*parts].count(part) != 1:
        return False
    dtype = part.meta["val"].dtype
    return all(
        has_dtype(p, dtype) and p.meta["val"].dim() == rank and isinstance(_channels(p), int)
        for p in parts
    )


def _channels(node: fx.Node) -> Any:
    return node.meta["val"].shape[1]
