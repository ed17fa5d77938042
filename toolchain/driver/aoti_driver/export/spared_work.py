"""Spares what torch.export computes and nobody reads: a tenth of its time and more."""

from __future__ import annotations

import contextlib
import functools
import traceback
from collections.abc import Iterator, Sequence
from typing import Any

from torch.fx import GraphModule

from aoti_driver.torch_internals import patching

_RECOMPILE = "torch.fx.graph_module:GraphModule.recompile"
_FRAMES = "torch.utils._traceback:_extract_symbolized_tb"
# What recompile() gives a module, beside `forward` of its class.
_OF_CODE = ("_code", "_lineno_map", "_prologue_start", "_in_spec", "_out_spec")


@contextlib.contextmanager
def spared() -> Iterator[None]:
    """Modules that are made inside get their Python code when somebody asks for it; each of the
    export's passes makes it anew. The frames of the model's stack are the same objects for all
    operators.
    """
    compile_now = patching.original(_RECOMPILE)

    def later(module: GraphModule) -> None:
        for name in _OF_CODE:
            vars(module).pop(name, None)
        for name in ("forward", *_OF_CODE):
            setattr(type(module), name, _Later(name, compile_now))
        for _, child in module.named_children():
            if isinstance(child, GraphModule):
                child.recompile()

    frame = functools.cache(traceback.FrameSummary)

    def frames(stack: Sequence[Any], skip: int) -> traceback.StackSummary:
        summary = traceback.StackSummary()
        summary.extend(frame(f["filename"], f["line"], f["name"]) for f in reversed(stack[skip:]))
        return summary

    with patching.replaced({_RECOMPILE: later, _FRAMES: frames}):
        yield


class _Later:
    """An attribute of a module's class, in place of what comes with its code: an attribute of the
    module itself, or another `forward`.
    """

    def __init__(self, name: str, compile_now: Any) -> None:
        self._name = name
        self._compile_now = compile_now

    def __get__(self, module: GraphModule | None, _: type) -> Any:
        if module is None:
            return self
        for name in _OF_CODE:
            if name in vars(type(module)):
                delattr(type(module), name)
        self._compile_now(module)
        return getattr(module, self._name)
