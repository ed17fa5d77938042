"""Finds the lines of the model that restrict a size while torch.export traces it.

torch says which sizes a model fixes or relates, but often not where: its messages about ``int(n /
2)``, a loop over a dim, or an LSTM name no line.
"""

from __future__ import annotations

import contextlib
import dataclasses
import sys
from collections.abc import Iterator
from types import FrameType
from typing import Any

import sympy
from torch._guards import TracingContext
from torch.fx.experimental.symbolic_shapes import ShapeEnv

from aoti_driver.export.source import Frame, SourceTree
from aoti_driver.torch_internals import patching

_UNROLLED = "torch/nn/modules/rnn.py"


@dataclasses.dataclass(frozen=True)
class Restriction:
    """A line during whose tracing torch added a guard that sizes near the sample's don't satisfy.

    unrolled: whether a PyTorch LSTM, GRU or RNN caused the guard.
    """

    frame: Frame
    unrolled: bool


@contextlib.contextmanager
def recorded(tree: SourceTree) -> Iterator[list[Restriction]]:
    """Records the restrictions during tracing in the block, in order, each line once."""
    found: list[Restriction] = []
    place = "torch.fx.experimental.symbolic_shapes:ShapeEnv._log_guard"
    log_guard = patching.original(place)

    def log(env: ShapeEnv, prefix: str, guard: Any, *args: Any, **kwargs: Any) -> None:
        if _restricts(env, guard):
            restriction = here(tree)
            if restriction is not None and restriction not in found:
                found.append(restriction)
        log_guard(env, prefix, guard, *args, **kwargs)

    with patching.replaced({place: log}):
        yield found


def _restricts(env: ShapeEnv, guard: Any) -> bool:
    """Whether a size slightly larger or smaller than the sample's violates the guard, or, for a
    negative number, a positive one.
    """
    sample = {s: env.backed_var_to_val.get(s) for s in getattr(guard, "free_symbols", ())}
    if not sample or any(not isinstance(v, (int, sympy.Integer)) for v in sample.values()):
        return False
    sizes = {s: int(v) for s, v in sample.items() if v is not None}
    for symbol, size in sizes.items():
        for other in (size - 1, size + 1, size + 2, abs(size)):
            if (other >= 2 or size < 0) and guard.subs({**sizes, symbol: other}) == sympy.false:
                return True
    return False


def here(tree: SourceTree) -> Restriction | None:
    """The user's innermost line: on Python's stack, or the line that strict export interprets."""
    unrolled = False
    user: FrameType | None = sys._getframe()
    while user is not None and not tree.contains(user.f_code.co_filename):
        unrolled = unrolled or user.f_code.co_filename.endswith(_UNROLLED)
        user = user.f_back
    if user is not None:
        code = user.f_code
        return Restriction(tree.frame(code.co_filename, user.f_lineno, code.co_name), unrolled)
    for place in reversed(TracingContext.extract_stack()):
        if tree.contains(place.filename):
            frame = tree.frame(place.filename, place.lineno or 0, place.name)
            return Restriction(frame, unrolled)
        unrolled = unrolled or place.filename.endswith(_UNROLLED)
    return None
