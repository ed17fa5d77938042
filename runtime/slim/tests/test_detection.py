"""torchvision's operators, against the same written in PyTorch's."""

from __future__ import annotations

from typing import Any

import detection
import dispatcher
import pytest
import torch
from harness import OpError, assert_equal, load
from torch import Tensor

slim = load()
TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-12, torch.float16: 3e-2}


def call(name: str, *args: Any) -> Tensor:
    return dispatcher.call(slim, f"torchvision::{name}", *args)[0]


def layouts(x: Tensor) -> list[Tensor]:
    """The tensor with other strides."""
    wide = torch.zeros(*x.shape[:-1], 2 * x.shape[-1], dtype=x.dtype)
    wide[..., ::2] = x
    return [x, x.transpose(0, 1).contiguous().transpose(0, 1), wide[..., ::2]]


def boxes(count: int, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Boxes of which many are equal or have no area, with few different scores."""
    corners = torch.randint(0, 20, (count, 4)) / 2
    corners[: count * 2 // 3, 2:] += corners[: count * 2 // 3, :2]
    return corners.to(dtype), (torch.randint(0, 5, (count,)) / 4).to(dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("count", [0, 1, 2, 40])
@pytest.mark.parametrize("threshold", [0.0, 0.3, 1.0])
def test_nms(dtype: torch.dtype, count: int, threshold: float) -> None:
    given, scores = boxes(count, dtype)
    expected = detection.nms(given, scores, threshold)
    for own in layouts(given):
        assert_equal(call("nms", own, scores, threshold), expected)
    twice = scores.repeat_interleave(2)[::2]
    assert_equal(call("nms", given, twice, threshold), expected)


def test_nms_takes_a_score_that_is_not_a_number_for_the_best() -> None:
    given = torch.tensor([[0.0, 0, 1, 1], [5, 5, 6, 6], [9, 9, 10, 10]])
    scores = torch.tensor([0.5, float("nan"), 0.75])
    assert call("nms", given, scores, 0.5).tolist() == [1, 2, 0]


def rois(count: int, dtype: torch.dtype) -> Tensor:
    """Boxes in two images, some of which are partly outside."""
    corners = torch.rand(count, 4) * 12 - 2
    corners[:, 2:] = torch.maximum(corners[:, :2], corners[:, 2:])
    return torch.cat([torch.randint(0, 2, (count, 1)), corners], 1).to(dtype)


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("aligned", [False, True])
@pytest.mark.parametrize("samples", [-1, 0, 1, 2])
@pytest.mark.parametrize("size", [(7, 9), (1, 5), (2, 1)])
def test_roi_align(dtype: torch.dtype, aligned: bool, samples: int, size: tuple[int, int]) -> None:
    images, given = torch.randn(2, 3, *size).to(dtype), rois(6, dtype)
    arguments = (0.5, 3, 2, samples, aligned)
    expected = detection.roi_align(images, given, *arguments)
    for x, b in zip(layouts(images), layouts(given), strict=True):
        actual = call("roi_align", x, b, *arguments)
        tolerance = TOLERANCE[dtype]
        assert_equal(actual, expected, rtol=tolerance, atol=tolerance, strides=True)


@pytest.mark.parametrize("boxes_", [0, 2])
@pytest.mark.parametrize("channels", [0, 3])
@pytest.mark.parametrize("height", [0, 2])
def test_roi_align_of_nothing(boxes_: int, channels: int, height: int) -> None:
    actual = call("roi_align", torch.ones(2, channels, 4, 4), rois(boxes_, torch.float32),
                  1.0, height, 2, 2, True)  # fmt: skip
    assert actual.shape == (boxes_, channels, height, 2)


def test_roi_align_of_a_box_that_ends_before_it_begins_is_zero() -> None:
    given = torch.tensor([[0.0, 3, 3, 1, 1]])
    assert call("roi_align", torch.ones(1, 1, 4, 4), given, 1.0, 2, 2, -1, True).eq(0).all()


def convolution(dtype: torch.dtype, groups: int, offset_groups: int, stride: int, masked: bool,
                kernel: tuple[int, int]) -> tuple[Any, ...]:  # fmt: skip
    padding, dilation = 1, 2
    out = [(n + 2 * padding - dilation * (k - 1) - 1) // stride + 1 for n, k in zip((7, 9), kernel)]
    taps = offset_groups * kernel[0] * kernel[1]
    tensors = (
        torch.randn(2, 4, 7, 9),
        torch.randn(6, 4 // groups, *kernel) / 4,
        2 * torch.randn(2, 2 * taps, *out),
        torch.rand(2, taps, *out) if masked else torch.zeros(2, 1),
        torch.randn(6),
    )
    numbers = (stride, stride, padding, padding, dilation, dilation, groups, offset_groups)
    return (*(t.to(dtype) for t in tensors), *numbers, masked)


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("offset_groups", [1, 2])
@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("kernel", [(3, 3), (1, 2)])
def test_deform_conv2d(
    dtype: torch.dtype,
    groups: int,
    offset_groups: int,
    stride: int,
    masked: bool,
    kernel: tuple[int, int],
) -> None:
    given = convolution(dtype, groups, offset_groups, stride, masked, kernel)
    expected = detection.deform_conv2d(*given)
    tolerance = TOLERANCE[dtype]
    for i in range(3):
        tensors = [layouts(t)[i] if t.dim() > 1 else t for t in given[:5]]
        actual = call("deform_conv2d", *tensors, *given[5:])
        assert_equal(actual, expected, rtol=tolerance, atol=tolerance, strides=True)


def test_deform_conv2d_of_no_images_and_of_no_channels() -> None:
    given = convolution(torch.float32, 1, 1, 1, True, (3, 3))
    images, weight, offset, mask, bias = given[:5]
    nothing = (images[:0], weight, offset[:0], mask[:0], bias)
    assert call("deform_conv2d", *nothing, *given[5:]).shape == (0, 6, *offset.shape[2:])
    biased = call("deform_conv2d", images[:, :0], weight[:, :0], offset, mask, bias, *given[5:])
    assert_equal(biased, bias[:, None, None].expand(biased.shape).contiguous())


def test_places_that_are_not_numbers_are_outside() -> None:
    given = list(convolution(torch.float32, 1, 1, 1, False, (3, 3)))
    given[2] = torch.full_like(given[2], float("nan"))
    result = call("deform_conv2d", *given)
    assert_equal(result, given[4][:, None, None].expand(result.shape).contiguous())


def test_errors_of_nms() -> None:
    given, scores = boxes(3, torch.float32)
    for message, arguments in {
        "nms: the boxes have 1 dims, must have 2, and the second one must have size 4": (
            given[0], scores,
        ),
        "nms: the scores have 2 dims, must have 1": (given, given),
        "nms: 3 boxes and 2 scores": (given, scores[:2]),
        "nms: boxes of float32 and scores of float64, must have the same dtype": (
            given, scores.double(),
        ),
        "nms: boxes of float16, must be float32 or float64": (given.half(), scores.half()),
    }.items():  # fmt: skip
        with pytest.raises(OpError) as error:
            call("nms", *arguments, 0.5)
        assert str(error.value) == message


def test_errors_of_roi_align() -> None:
    images, given = torch.ones(2, 3, 4, 4), torch.tensor([[0.0, 0, 0, 4, 4]])
    other = given.clone()
    other[0, 0] = 2
    huge = given.clone()
    huge[0, 3] = 1e9
    none = given.clone()
    none[0, 0] = float("nan")
    for message, x, b in [
        ("roi_align: the input has 3 dims, must have 4", images[0], given),
        ("roi_align: the boxes have 2 dims, must have 2, and the second one must have size 5 "
         "(image, x1, y1, x2, y2)", images, given[:, :4]),
        ("roi_align: an input of float32 and boxes of float64, must have the same dtype", images,
         given.double()),
        ("roi_align: box 0 is of image 2, must be in 0..1", images, other),
        ("roi_align: box 0 is of image nan, must be in 0..1", images, none),
        ("roi_align: a box has more than 1048576 samples along a dim of a cell", images, huge),
        ("roi_align: the images are empty", images[:, :, :0], given),
        ("roi_align: not supported for bfloat16", images.bfloat16(), given.bfloat16()),
    ]:  # fmt: skip
        with pytest.raises(OpError) as error:
            call("roi_align", x, b, 1.0, 2, 2, 0, True)
        assert str(error.value) == message
    with pytest.raises(OpError, match=r"the result is \[-1, 2\], must not be negative"):
        call("roi_align", images, given, 1.0, -1, 2, 0, True)


def test_errors_of_deform_conv2d() -> None:
    given = convolution(torch.float32, 1, 1, 1, True, (3, 3))
    images, weight, offset, mask, bias = range(5)
    for message, place, value in [
        ("input has 3 dims, must have 4", images, given[images][0]),
        ("weight has 3 dims, must have 4", weight, given[weight][0]),
        ("tensors of float32 and float64, must have the same dtype", bias, given[bias].double()),
        ("offset has the sizes [2, 17, 5, 7], must be [2, 18, 5, 7]", offset, given[offset][:, 1:]),
        ("mask has the sizes [1, 9, 5, 7], must be [2, 9, 5, 7]", mask, given[mask][:1]),
        ("bias has the sizes [5], must be [6]", bias, given[bias][1:]),
        ("strides, dilations and groups must be positive", 5, 0),
        ("strides, dilations and groups must be positive", 11, 0),
        ("the padding must not be negative", 7, -1),
        ("4 channels and 6 filters of 4 channels don't fit 2 groups", 11, 2),
        ("4 channels are no multiple of 3 groups of offsets", 12, 3),
        ("the size of the result is [0, 7], must be positive", 9, 20),
        ("the filters are empty", weight, given[weight][:, :, :0]),
    ]:
        with pytest.raises(OpError) as error:
            call("deform_conv2d", *given[:place], value, *given[place + 1 :])
        assert str(error.value) == f"deform_conv2d: {message}"
    half = [t.bfloat16() for t in given[:5]]
    with pytest.raises(OpError, match="deform_conv2d: not supported for bfloat16"):
        call("deform_conv2d", *half, *given[5:])
