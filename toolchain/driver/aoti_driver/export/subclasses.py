"""Replaces parameters of tensor subclasses, such as torchao's quantized weights, by their tensors.

A weights file has only plain tensors. The module constructs the subclass from them at each use, and
the exported program contains the resulting operators.
"""

from __future__ import annotations

import torch
from torch.utils._python_dispatch import is_traceable_wrapper_subclass


def unwrap(module: torch.nn.Module) -> None:
    """Does what torchao calls ``unwrap_tensor_subclass``; has no effect on a module without
    subclasses.
    """
    if not any(is_traceable_wrapper_subclass(p) for p in module.parameters()):
        return
    from torch._functorch._aot_autograd.subclass_parametrization import (
        unwrap_tensor_subclass_parameters,
    )

    unwrap_tensor_subclass_parameters(module)
