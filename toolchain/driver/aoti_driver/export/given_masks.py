"""PyTorch's Transformer layers take a mask as it is.

Where nobody says whether a mask is the causal one (`is_causal`), nn.TransformerEncoder and
nn.TransformerDecoder compare its values with the causal mask's, and attention might then do without
it. No program can ask for values; with the mask, it computes the same.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from aoti_driver.torch_internals import patching

_PLACE = "torch.nn.modules.transformer:_detect_is_causal_mask"


@contextlib.contextmanager
def used() -> Iterator[None]:
    with patching.replaced({_PLACE: _is_causal}):
        yield


def _is_causal(mask: Any, is_causal: bool | None = None, size: int | None = None) -> bool:
    return is_causal is True
