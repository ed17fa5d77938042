"""Rounds images to bfloat16 where they are computed.

A model of ``precision = "bfloat16"`` rounds what its convolutions read. Where nothing else is read
of an image, the convolution that computes it can round its result itself, and less is written and
read. So roundings move to before pools and concatenations, which change no number: they only choose
some, and rounding keeps their order. And an image that is also added to a convolution's result, as
in a ResNet, is added as it was rounded.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import fx
from torch.export import ExportedProgram

from aoti_driver.program.graph_nodes import (
    CASTS,
    arguments_of,
    is_cast,
    is_float32,
    is_only_read,
    is_widening,
)
from aoti_driver.program.signature import replace_node

_ATEN: Any = torch.ops.aten
_CAT = _ATEN.cat.default
_SUMS = (_ATEN.add.Tensor, _ATEN.add_.Tensor)
# A convolution's result is widened, normalized, and given to an activation.
_MOST_BETWEEN = 3
# Operators whose result consists of numbers of their first argument, each one's largest or all.
_CHOOSING = (
    _CAT,
    _ATEN.max_pool1d.default,
    _ATEN.max_pool2d.default,
    _ATEN.max_pool3d.default,
    _ATEN.upsample_nearest1d.vec,
    _ATEN.upsample_nearest2d.vec,
    _ATEN.upsample_nearest3d.vec,
)


def move_up(ep: ExportedProgram) -> None:
    """Changes the program in place."""
    moved = True
    while moved:
        moved = False
        _share(ep)
        _add_rounded(ep.graph)
        for node in list(reversed(ep.graph.nodes)):
            if _is_movable(node):
                _move(ep, node)
                moved = True


def _is_rounding(node: fx.Node) -> bool:
    return is_cast(node, torch.bfloat16) and is_float32(node.args[0])


def _argument(node: fx.Node) -> fx.Node:
    """What the node converts."""
    argument = node.args[0]
    assert isinstance(argument, fx.Node)
    return argument


def _share(ep: ExportedProgram) -> None:
    """Leaves one rounding of each value that nothing writes to: the first one. Of what was bfloat16
    before, it leaves none.
    """
    first: dict[Any, fx.Node] = {}
    for node in list(ep.graph.nodes):
        if not _is_rounding(node) or not _stays(image := _argument(node)):
            continue
        if is_widening(image) and _stays(_argument(image)):
            first.setdefault(image, _argument(image))
        kept = first.setdefault(image, node)
        if kept is not node:
            replace_node(ep, node, kept)


def _add_rounded(graph: fx.Graph) -> None:
    """Lets sums with results of convolutions read rounded images, if all else that reads these
    images rounds them.
    """
    places = {node: place for place, node in enumerate(graph.nodes)}
    for rounding in places:
        if not _is_rounding(rounding) or not _stays(image := _argument(rounding)):
            continue
        sums = [user for user in image.users if user is not rounding]
        behind = all(places[rounding] < places[user] for user in sums)
        if not sums or not behind or not all(_is_sum(user, image) for user in sums):
            continue
        with graph.inserting_after(rounding):
            widened = graph.call_function(CASTS[0], (rounding,), {"dtype": torch.float32})
        widened.meta = {**image.meta}
        for node in sums:
            node.replace_input_with(image, widened)


def _is_sum(node: fx.Node, image: fx.Node) -> bool:
    """Whether it is the sum of the image and the result of a convolution of bfloat16."""
    if node.target not in _SUMS or node.args[0] is node.args[1]:
        return False
    other: Any = node.args[0] if node.args[1] is image else node.args[1]
    for _ in range(_MOST_BETWEEN):
        if not isinstance(other, fx.Node) or other.op != "call_function" or len(other.users) != 1:
            return False
        if is_widening(other):
            return str(_argument(other).target).startswith("aten.conv")
        other = other.args[0]
    return False


def _stays(node: fx.Node) -> bool:
    """Whether nothing writes to the node's value behind the node."""
    if not is_only_read(node, returned=True):
        return False
    if node.op != "call_function":
        return True
    if not isinstance(node.target, torch._ops.OpOverload):
        return False
    # If it is in an argument's memory, the argument must have no other user.
    return all(
        [*argument.users] == [node] and _is_own(argument)
        for _, argument, alias in arguments_of(node)
        if alias is not None and isinstance(argument, fx.Node)
    )


def _is_own(node: fx.Node) -> bool:
    """Whether the node's value is in memory of its own."""
    schema = getattr(node.target, "_schema", None)
    return schema is not None and all(result.alias_info is None for result in schema.returns)


def _is_movable(node: fx.Node) -> bool:
    """Whether only roundings read the node, and then only roundings read something before it."""
    if node.op != "call_function" or node.target not in _CHOOSING or not node.users:
        return False
    if not is_float32(node) or not all(_is_rounding(user) for user in node.users):
        return False
    return any(
        is_float32(x) and all(user is node or _is_rounding(user) for user in x.users)
        for x in _images(node)
    )


def _images(node: fx.Node) -> list[fx.Node]:
    given = node.args[0]
    return [*given] if node.target == _CAT else [given]  # type: ignore[list-item,misc]


def _move(ep: ExportedProgram, node: fx.Node) -> None:
    roundings = [*node.users]
    images = []
    for x in _images(node):
        with ep.graph.inserting_before(node):
            like = roundings[0]
            target: Any = like.target
            rounded = ep.graph.call_function(target, (x, *like.args[1:]), like.kwargs)
        rounded.meta = {**x.meta, "val": x.meta["val"].to(torch.bfloat16)}
        images.append(rounded)
    node.args = (images if node.target == _CAT else images[0], *node.args[1:])
    node.meta["val"] = node.meta["val"].to(torch.bfloat16)
    for rounding in roundings:
        replace_node(ep, rounding, node)
