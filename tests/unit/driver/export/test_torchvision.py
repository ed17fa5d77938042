"""Operators of torchvision that the slim runtime has."""

from __future__ import annotations

import json
import multiprocessing
from collections.abc import Callable
from typing import Any

import pytest

from tests.unit.driver.harness import Export, codegen, module

# What torchvision registers, written in Python; its fake kernel, too, wants two boxes at least.
_NMS = """
LIBRARY = torch.library.Library("torchvision", "DEF")
LIBRARY.define("nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")

@torch.library.impl(LIBRARY, "nms", "CPU")
def nms(dets, scores, iou_threshold):
    return scores.argsort(descending=True)[:2]

@torch.library.register_fake("torchvision::nms")
def fake(dets, scores, iou_threshold):
    return dets.new_empty(torch.library.get_ctx().new_dynamic_size(min=2), dtype=torch.int64)
"""

_OTHERS = """
LIBRARY = torch.library.Library("torchvision", "DEF")
LIBRARY.define("deform_conv2d(Tensor input, Tensor weight, Tensor offset, Tensor mask, "
               "Tensor bias, SymInt stride_h, SymInt stride_w, SymInt pad_h, SymInt pad_w, "
               "SymInt dilation_h, SymInt dilation_w, SymInt groups, SymInt offset_groups, "
               "bool use_mask) -> Tensor")

@torch.library.impl(LIBRARY, "deform_conv2d", "CPU")
def deform_conv2d(x, weight, offset, *others):
    return x.new_zeros(len(x), len(weight), *offset.shape[2:])
"""

_ROI_ALIGN = """
LIBRARY.define("roi_align(Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, "
               "SymInt pooled_width, int sampling_ratio, bool aligned) -> Tensor")

@torch.library.impl(LIBRARY, "roi_align", "CPU")
def roi_align(x, boxes, scale, height, width, samples, aligned):
    return x.new_zeros(len(boxes), x.shape[1], height, width)
"""


def apart(function: Callable[[], Any]) -> Any:
    """The function's result in another process: what it registers is not registered in this one."""
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    child = context.Process(target=lambda: sender.send(function()))
    child.start()
    sender.close()
    result = receiver.recv()
    child.join()
    return result


@pytest.fixture
def elsewhere(export: Export) -> Export:
    return lambda *args, **options: apart(lambda: export(*args, **options))


def test_code_is_generated_where_torchvision_is_not(elsewhere: Export) -> None:
    source = module("return b[torch.ops.torchvision.nms(b, s, 0.5)]", arguments="b, s") + _NMS
    result = elsewhere(source, {"b": "float32[n, 4]", "s": "float32[n]"}, {"n": "1..64"})
    assert result.code == 0, result.error
    (schema,) = json.loads(result.graph.read_text(encoding="utf-8"))["operators"]
    assert schema == "torchvision::nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"
    wrapper = apart(lambda: codegen(result))
    assert 'aoti_dispatch::Call("torchvision::nms", "", stack);' in wrapper
    # A call may keep no box or one.
    assert ">= 0L" in wrapper and ">= 2L" not in wrapper


def test_sizes_of_results(elsewhere: Export) -> None:
    forward = (
        "y = torch.ops.torchvision.roi_align(x, b, 0.5, 3, 2, 2, True)\n"
        "w, o, m = torch.ones(6, 4, 3, 3), torch.ones(2, 18, 5, 6), torch.ones(2, 1)\n"
        "z = torch.ops.torchvision.deform_conv2d(x, w, o, m, torch.ones(6), 1, 1, 0, 0, 1, 1, 1, "
        "1, False)\n"
        "return y, z"
    )
    inputs = {"x": "float32[2, 4, 7, 8]", "b": "float32[n, 5]"}
    result = elsewhere(
        module(forward, arguments="x, b") + _OTHERS + _ROI_ALIGN, inputs, {"n": "2..9"}
    )
    assert result.code == 0, result.error
    wrapper = apart(lambda: codegen(result))
    assert 'aoti_dispatch::Call("torchvision::roi_align"' in wrapper
    assert 'aoti_dispatch::Call("torchvision::deform_conv2d"' in wrapper


# torchvision's functions, as far as they matter here, in modules of its names.
_DETECTION = """
import sys
import types

TEXTS = {
    "torchvision.ops.boxes": '''
import torch
nms = torch.ops.torchvision.nms
def batched_nms(boxes, scores, idxs, iou_threshold):
    if boxes.numel() == 0:
        return torch.empty((0,), dtype=torch.int64)
    return nms(boxes + (idxs.to(boxes) * (boxes.max() + 1))[:, None], scores, iou_threshold)
''',
    "torchvision.ops.poolers": '''
import torch
def _convert_to_roi_format(boxes):
    return torch.cat([boxes[0].new_zeros(boxes[0].size(0), 1), boxes[0]], 1)
def roi_align(input, boxes, output_size, spatial_scale=1.0, sampling_ratio=-1):
    return torch.ops.torchvision.roi_align(
        input, boxes, spatial_scale, *output_size, sampling_ratio, False)
def _multiscale_roi_align(x_filtered, boxes, output_size, sampling_ratio, scales, mapper):
    rois = _convert_to_roi_format(boxes)
    levels = mapper(boxes)
    result = torch.zeros((len(rois), x_filtered[0].shape[1]) + output_size)
    for level, (features, scale) in enumerate(zip(x_filtered, scales)):
        rows = torch.where(levels == level)[0]
        result[rows] = roi_align(features, rois[rows], output_size, scale, sampling_ratio)
    return result
''',
    "torchvision.models.detection._utils": '''
import torch
class BoxCoder:
    def decode_single(self, rel_codes, boxes):
        return rel_codes * boxes.repeat(1, rel_codes.size(1) // 4)
    def decode(self, rel_codes, boxes):
        count = sum(b.size(0) for b in boxes)
        if count > 0:
            rel_codes = rel_codes.reshape(count, -1)
        pred_boxes = self.decode_single(rel_codes, torch.cat(boxes))
        if count > 0:
            pred_boxes = pred_boxes.reshape(count, -1, 4)
        return pred_boxes
''',
}
for name, text in TEXTS.items():
    sys.modules[name] = types.ModuleType(name)
    exec(text, sys.modules[name].__dict__)
batched_nms = sys.modules["torchvision.ops.boxes"].batched_nms
pool = sys.modules["torchvision.ops.poolers"]._multiscale_roi_align
coder = sys.modules["torchvision.models.detection._utils"].BoxCoder()
"""


def test_detection_models_for_any_number_of_boxes(elsewhere: Export) -> None:
    forward = (
        "kept = batched_nms(b, s, (s > 0).long(), 0.5)\n"
        "b = b[kept]\n"
        "level = lambda boxes: (boxes[0][:, 0] > 1).long()\n"
        "y = pool([x, x[..., ::2, ::2]], [b], (3, 2), 2, [1.0, 0.5], level)\n"
        "return b, y, coder.decode(y.flatten(1)[:, :8], [b])"
    )
    source = module(forward, arguments="x, b, s") + _NMS + _ROI_ALIGN + _DETECTION
    inputs = {"x": "float32[1, 4, 8, 8]", "b": "float32[n, 4]", "s": "float32[n]"}
    result = elsewhere(source, inputs, {"n": "1..64"})
    assert result.code == 0, result.error
    wrapper = apart(lambda: codegen(result))
    assert 'aoti_dispatch::Call("torchvision::nms"' in wrapper
    assert 'aoti_dispatch::Call("torchvision::roi_align"' in wrapper
