"""What Inductor could not compile, in the user's terms."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import torch

from aoti_driver.base.errors import DriverError


@contextlib.contextmanager
def errors_for(label: str) -> Iterator[None]:
    """Reports what Inductor could not compile in the user's terms: the operator and its module."""
    try:
        yield
    except DriverError:
        raise
    except Exception as e:  # torch raises many types, from many layers
        lines = str(e).strip().splitlines() or [""]
        reason = f"{type(e).__name__}: {lines[0]}".split("LoweringException: ")[-1]
        operator = next((li.split("target: ")[1] for li in lines if "  target: " in li), None)
        place = _module_path(e)
        raise DriverError(
            f"{label}: Inductor (torch {torch.__version__}) can't compile this program"
            + (f": operator {operator}" if operator else "")
            + (f" in {place}" if place else "")
            + f": {reason}\nReplace the operator in forward(), or name it in torch_export's "
            "decompositions so that it is written in simpler ones"
        ) from e


def _module_path(error: BaseException) -> str | None:
    """The submodule whose operator Inductor was compiling when it failed."""
    node = None
    trace = error.__traceback__
    while trace is not None:
        candidate = trace.tb_frame.f_locals.get("n")
        if isinstance(candidate, torch.fx.Node):
            node = candidate
        trace = trace.tb_next
    stack = node.meta.get("nn_module_stack") if node is not None else None
    if not stack:
        return None
    path, kind = list(stack.values())[-1]
    return f"{path or 'the model'} ({kind})"
