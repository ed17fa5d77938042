"""Functions in the sizes of outputs, for integers and for torch's symbolic ones."""

from __future__ import annotations

import functools
import math
from typing import Any

import torch

floor = math.floor
ceil = math.ceil
trunc = math.trunc


_torch: Any = torch  # which has no types for them


def max(*sizes: Any) -> Any:
    return functools.reduce(_torch.sym_max, sizes)


def min(*sizes: Any) -> Any:
    return functools.reduce(_torch.sym_min, sizes)


def float(size: Any) -> Any:
    return _torch.sym_float(size)


def sqrt(size: Any) -> Any:
    return _torch._sym_sqrt(size)
