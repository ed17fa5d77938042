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
LIBRARY.define("roi_align(Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, "
               "SymInt pooled_width, int sampling_ratio, bool aligned) -> Tensor")
LIBRARY.define("deform_conv2d(Tensor input, Tensor weight, Tensor offset, Tensor mask, "
               "Tensor bias, SymInt stride_h, SymInt stride_w, SymInt pad_h, SymInt pad_w, "
               "SymInt dilation_h, SymInt dilation_w, SymInt groups, SymInt offset_groups, "
               "bool use_mask) -> Tensor")

@torch.library.impl(LIBRARY, "roi_align", "CPU")
def roi_align(x, boxes, scale, height, width, samples, aligned):
    return x.new_zeros(len(boxes), x.shape[1], height, width)

@torch.library.impl(LIBRARY, "deform_conv2d", "CPU")
def deform_conv2d(x, weight, offset, *others):
    return x.new_zeros(len(x), len(weight), *offset.shape[2:])
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
    result = elsewhere(module(forward, arguments="x, b") + _OTHERS, inputs, {"n": "2..9"})
    assert result.code == 0, result.error
    wrapper = apart(lambda: codegen(result))
    assert 'aoti_dispatch::Call("torchvision::roi_align"' in wrapper
    assert 'aoti_dispatch::Call("torchvision::deform_conv2d"' in wrapper
