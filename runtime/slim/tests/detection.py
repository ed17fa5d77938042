"""torchvision's operators, written in PyTorch's: what slim's are compared with.

torchvision is not among the packages of these tests. Its schemas are registered here, with these
functions for the CPU, so that the operators can be called as those of an installed torchvision.
They take the dtypes that torchvision's own take, and give the same results.
"""

from __future__ import annotations

import functools
import math

import torch
from torch import Tensor

SCHEMAS = {
    "nms": "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "roi_align": "(Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, "
    "SymInt pooled_width, int sampling_ratio, bool aligned) -> Tensor",
    "deform_conv2d": "(Tensor input, Tensor weight, Tensor offset, Tensor mask, Tensor bias, "
    "SymInt stride_h, SymInt stride_w, SymInt pad_h, SymInt pad_w, SymInt dilation_h, "
    "SymInt dilation_w, SymInt groups, SymInt offset_groups, bool use_mask) -> Tensor",
}


def nms(boxes: Tensor, scores: Tensor, threshold: float) -> Tensor:
    """Each box in the order of the scores, unless a kept one covers it: every pair is looked at."""
    _require(boxes.dtype in (torch.float32, torch.float64) and scores.dtype == boxes.dtype)
    kept: list[int] = []
    areas = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
    for i in scores.argsort(descending=True, stable=True).tolist():
        for j in kept:
            corner = torch.minimum(boxes[i, 2:], boxes[j, 2:])
            size = (corner - torch.maximum(boxes[i, :2], boxes[j, :2])).clamp(min=0)
            shared = size[0] * size[1]
            if float(shared / (areas[i] + areas[j] - shared)) > threshold:
                break
        else:
            kept.append(i)
    return torch.tensor(kept, dtype=torch.int64)


def _bilinear(image: Tensor, y: Tensor, x: Tensor, border: bool) -> Tensor:
    """[channels, *places]: the pixels of [channels, height, width] at places between them.

    border: whether a place within a pixel of the image has the nearest pixel; otherwise pixels
    outside of the image are zero.
    """
    height, width = image.shape[-2:]
    if border:
        inside = (y >= -1) & (y <= height) & (x >= -1) & (x <= width)
        y, x = y.clamp(0, height - 1), x.clamp(0, width - 1)
    else:
        inside = (y > -1) & (y < height) & (x > -1) & (x < width)
    top, left = y.floor(), x.floor()
    result = torch.zeros(image.shape[0], *y.shape, dtype=image.dtype)
    for row, row_share in ((top, 1 - (y - top)), (top + 1, y - top)):
        for column, share in ((left, 1 - (x - left)), (left + 1, x - left)):
            there = inside & (row >= 0) & (row < height) & (column >= 0) & (column < width)
            at = row.clamp(0, height - 1).long(), column.clamp(0, width - 1).long()
            result += torch.where(there, image[:, at[0], at[1]] * (row_share * share), 0)
    return result


def roi_align(
    images: Tensor,
    boxes: Tensor,
    scale: float,
    height: int,
    width: int,
    sampling_ratio: int,
    aligned: bool,
) -> Tensor:
    _require(images.dtype in (torch.float16, torch.float32, torch.float64))
    _require(boxes.dtype == images.dtype)
    result = torch.zeros(len(boxes), images.shape[1], height, width, dtype=images.dtype)

    def places(begin: Tensor, end: Tensor, cells: int) -> Tensor:
        """[cells, samples]"""
        start, stop = begin * scale - aligned / 2, end * scale - aligned / 2
        size = (stop - start if aligned else (stop - start).clamp(min=1)) / cells
        count = sampling_ratio if sampling_ratio > 0 else max(0, math.ceil(size))
        step = (torch.arange(count).to(images.dtype) + 0.5) * size / max(count, 1)
        return start + torch.arange(cells).to(images.dtype)[:, None] * size + step

    for i, box in enumerate(boxes):
        y, x = places(box[2], box[4], height), places(box[1], box[3], width)
        shape = (len(y), len(x), y.shape[1], x.shape[1])
        rows, columns = y[:, None, :, None].expand(shape), x[None, :, None, :].expand(shape)
        values = _bilinear(images[int(box[0])], rows, columns, border=True)
        if values.numel():
            result[i] = values.mean((-2, -1))
    return result


def deform_conv2d(
    images: Tensor, weight: Tensor, offset: Tensor, mask: Tensor, bias: Tensor, *numbers: int
) -> Tensor:
    _require(images.dtype in (torch.float16, torch.float32, torch.float64))
    down, along, top, left, row_step, column_step, groups, offset_groups, masked = numbers
    kernel = weight.shape[2:]
    out = offset.shape[2:]
    batch, channels = images.shape[:2]
    rows = (torch.arange(out[0]) * down - top).to(images.dtype)[:, None]
    columns = (torch.arange(out[1]) * along - left).to(images.dtype)
    each = channels // offset_groups
    offset = offset.view(batch, offset_groups, *kernel, 2, *out)
    if masked:
        mask = mask.view(batch, offset_groups, *kernel, *out)
    read = torch.zeros(batch, channels, *kernel, *out, dtype=images.dtype)
    for b in range(batch):
        for g in range(offset_groups):
            part = slice(g * each, (g + 1) * each)
            for i in range(kernel[0]):
                for j in range(kernel[1]):
                    y = rows + i * row_step + offset[b, g, i, j, 0]
                    x = columns + j * column_step + offset[b, g, i, j, 1]
                    value = _bilinear(images[b, part], y, x, border=False)
                    read[b, part, i, j] = value * mask[b, g, i, j] if masked else value
    split = read.reshape(batch, groups, -1, out[0] * out[1])
    filters = weight.reshape(groups, len(weight) // groups, -1)
    product = (filters @ split).reshape(batch, len(weight), *out)
    return product + bias[:, None, None]


@functools.cache
def register() -> None:
    """Makes torch.ops.torchvision have these operators, and kernels for the CPU."""
    for name, schema in SCHEMAS.items():
        if not hasattr(torch.ops.torchvision, name):
            torch.library.define(f"torchvision::{name}", schema)
        torch.library.impl(f"torchvision::{name}", "CPU", globals()[name])


def _require(condition: bool) -> None:
    if not condition:
        raise NotImplementedError("not implemented for these dtypes")
