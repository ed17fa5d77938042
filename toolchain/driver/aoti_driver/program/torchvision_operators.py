"""torchvision's operators that the slim runtime has.

Where a model's source runs, torchvision registers them, or the model does with the same schemas.
Where a program is only read, torchvision is not there: they are declared by their schemas, and have
no kernels.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch._library import simple_registry

SCHEMAS = {
    "torchvision::nms": "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "torchvision::roi_align": "(Tensor input, Tensor rois, float spatial_scale, "
    "SymInt pooled_height, SymInt pooled_width, int sampling_ratio, bool aligned) -> Tensor",
    "torchvision::deform_conv2d": "(Tensor input, Tensor weight, Tensor offset, Tensor mask, "
    "Tensor bias, SymInt stride_h, SymInt stride_w, SymInt pad_h, SymInt pad_w, "
    "SymInt dilation_h, SymInt dilation_w, SymInt groups, SymInt offset_groups, bool use_mask) "
    "-> Tensor",
}


def is_known(op: Any) -> bool:
    """Whether slim has the operator: by its schema, since the name may be that of another one."""
    if not isinstance(op, torch._ops.OpOverload):
        return False
    text = str(op._schema)
    name = text.partition("(")[0]
    return text == name + SCHEMAS.get(name, "")


def complete() -> None:
    """Registers fake kernels of the operators that are registered and lack them.

    That of nms is replaced: torchvision's says that at least two boxes are kept, which compiled
    code would then require of every call.
    """
    for name, fake in _FAKES.items():
        if not is_known(getattr(getattr(torch.ops.torchvision, name, None), "default", None)):
            continue
        holder = simple_registry.singleton.find(f"torchvision::{name}").fake_impl
        has = torch._C._dispatch_has_kernel_for_dispatch_key(f"torchvision::{name}", "Meta")
        if not has or (name == "nms" and holder.kernel.func is not fake):
            # torch.library.register_fake would insist on torchvision's own module.
            holder.register(fake, __name__, _library(), allow_override=True)


@functools.cache
def _library() -> torch.library.Library:
    return torch.library.Library("torchvision", "FRAGMENT")  # type: ignore[no-untyped-call]


def _nms(dets: Tensor, scores: Tensor, iou_threshold: float) -> Tensor:
    kept = torch.library.get_ctx().new_dynamic_size(min=0)
    return dets.new_empty(kept, dtype=torch.int64)


def _roi_align(
    images: Tensor, boxes: Tensor, _scale: float, height: int, width: int, _count: int, _to: bool
) -> Tensor:
    return images.new_empty((boxes.size(0), images.size(1), height, width))


def _deform_conv2d(images: Tensor, weight: Tensor, offset: Tensor, *_: Any) -> Tensor:
    return images.new_empty((images.size(0), weight.size(0), *offset.shape[-2:]))


_FAKES: dict[str, Callable[..., Tensor]] = {
    "nms": _nms,
    "roi_align": _roi_align,
    "deform_conv2d": _deform_conv2d,
}
