"""Parameters of tensor subclasses, such as torchao's quantized weights, as the tensors in them.

A weights file holds plain tensors. The module puts the subclass together anew at each use, and the
exported program has what that comes to.
"""

from __future__ import annotations

import torch
from torch.utils._python_dispatch import is_traceable_wrapper_subclass


def unwrap(module: torch.nn.Module) -> None:
    """What torchao calls ``unwrap_tensor_subclass``; nothing for a module without any."""
    if not any(is_traceable_wrapper_subclass(p) for p in module.parameters()):
        return
    from torch._functorch._aot_autograd.subclass_parametrization import (
        unwrap_tensor_subclass_parameters,
    )

    unwrap_tensor_subclass_parameters(module)
