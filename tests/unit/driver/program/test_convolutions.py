"""The layout of a convolution's result is predicted without a look at the host's CPU."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from aoti_driver.program import convolutions
from torch._subclasses import FakeTensorMode

_Backend: Any = torch._C._ConvBackend  # type: ignore[attr-defined]


def predicted(dtype: torch.dtype, transposed: bool, extra: int) -> torch.memory_format:
    lists = ([2] * 3, [0] * 3, [1] * 3, transposed, [extra] * 3, 1)
    FakeTensorMode.cache_clear()
    with FakeTensorMode():
        x = torch.empty(2, 12, 5, 7, 6, dtype=dtype).to(memory_format=torch.channels_last_3d)
        w = torch.empty(12, 12, 3, 3, 3, dtype=dtype)
        y = torch.ops.aten.convolution(x, w, None, *lists)
    last = y.is_contiguous(memory_format=torch.channels_last_3d)
    return torch.channels_last_3d if last else torch.contiguous_format


@pytest.mark.parametrize("host", ["oneDNN computes both", "oneDNN computes neither"])
@pytest.mark.parametrize(
    ("dtype", "transposed", "extra", "expected"),
    [
        (torch.bfloat16, False, 0, torch.contiguous_format),
        (torch.bfloat16, True, 1, torch.contiguous_format),
        (torch.float16, False, 0, torch.contiguous_format),
        (torch.float16, True, 1, torch.contiguous_format),
        (torch.float32, False, 0, torch.channels_last_3d),
        (torch.float64, False, 0, torch.contiguous_format),
    ],
)
def test_layouts_do_not_depend_on_the_host(
    monkeypatch: pytest.MonkeyPatch,
    host: str,
    dtype: torch.dtype,
    transposed: bool,
    extra: int,
    expected: torch.memory_format,
) -> None:
    if dtype in (torch.bfloat16, torch.float16):
        plain = _Backend.SlowTranspose3d if transposed else _Backend.Slow3d
        chosen = _Backend.Mkldnn if host == "oneDNN computes both" else plain
        monkeypatch.setattr(torch._C, "_select_conv_backend", lambda *_, **__: chosen)
    with convolutions.layouts_of_every_host():
        assert predicted(dtype, transposed, extra) == expected
