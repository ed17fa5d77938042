"""Operators that are made of others become these: by the function that they are registered for, or,
if they are registered in Python, by what their bodies call.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch._guards import detect_fake_mode
from torch._library.custom_ops import OPDEFS
from torch.export import ExportedProgram
from torch.overrides import TorchFunctionMode

from aoti_driver.contract.namespaces import is_own
from aoti_driver.contract.source_locations import Location
from aoti_driver.export import custom_operators, library_operators, restrictions
from aoti_driver.export.custom_operators import Untraced
from aoti_driver.export.locations import of_torch
from aoti_driver.export.source import Frame, SourceTree
from aoti_driver.program.nodes import nodes_of

_COMPOSITE: Any = torch._C.DispatchKey.CompositeImplicitAutograd
# Where an implementation for the CPU is registered; the first one is called.
_KEYS: tuple[Any, ...] = (
    torch._C.DispatchKey.CPU,
    torch._C.DispatchKey.CompositeExplicitAutogradNonFunctional,
    torch._C.DispatchKey.CompositeExplicitAutograd,
)
_LONGEST = 200


class Bodies(TorchFunctionMode):
    """While it is active, a call of an operator in Python is a call of its body.

    untraced: the operators for which that failed.
    """

    def __init__(self, tree: SourceTree) -> None:
        super().__init__()
        self.tree = tree
        self.untraced: dict[Any, Untraced] = {}

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        op = _overload(func, args, kwargs)
        if op is None or op in self.untraced or (body := _body(op)) is None:
            return func(*args, **kwargs)
        try:
            # The mode is off in here. A body that the dispatcher calls must not come back, so
            # operators that it calls are replaced later, in the finished program.
            with self if _definition(op) else contextlib.nullcontext():
                return body(*args, **kwargs)
        except Exception as e:
            self.untraced[op] = self._reason(e)
        return func(*args, **kwargs)  # the error shall have all operators that can't be traced

    def function(self, op: Any, ep: ExportedProgram) -> Callable[..., Any] | None:
        """What replaces calls of the operator in a finished program; None if nothing does."""
        if custom_operators.is_composite(op):
            # The registered function itself, because op.decompose may lead back to the table.
            return functools.partial(op._op_dk, _COMPOSITE)
        if op in self.untraced or (body := _body(op)) is None:
            return None
        sizes = _guards_on_sizes(ep)

        def traced(*args: Any, **kwargs: Any) -> Any:
            before = len(sizes)
            try:
                result = body(*args, **kwargs)
            except Exception as e:
                self.untraced[op] = self._reason(e)
                return NotImplemented
            if len(sizes) != before:
                self.untraced[op] = Untraced(
                    "it compares sizes that vary, which a body that another operator or a branch "
                    "calls can't",
                    None,
                    None,
                )
                return NotImplemented
            return result

        return traced

    def _reason(self, error: Exception) -> Untraced:
        here = restrictions.here(self.tree)
        return Untraced(
            _reason(error), self._body_line(error), None if here is None else _location(here.frame)
        )

    def _body_line(self, error: Exception) -> Location | None:
        """The innermost line of the body that is not torch's own."""
        for frame in reversed(self.tree.frames(error.__traceback__)):
            if not of_torch(frame.path):
                return _location(frame)
        return None


def _location(frame: Frame) -> Location:
    return Location(frame.path, frame.line, frame.code)


def written_out(ep: ExportedProgram, bodies: Bodies) -> ExportedProgram:
    """Replaces the operators that are left: names for functions of PyTorch's operators, such as
    torchao's, and operators in Python that other operators or the program's branches call.
    """
    before: set[Any] = set()
    while True:
        operators = dict.fromkeys(op for op, _ in custom_operators.custom(ep))
        table = {op: f for op in operators if (f := bodies.function(op, ep)) is not None}
        if set(table) <= before:
            break
        before |= set(table)
        ep = ep.run_decompositions(table)
    return ep


def _body(op: Any) -> Callable[..., Any] | None:
    """The operator's implementation for the CPU, if that is in Python."""
    if custom_operators.is_composite(op) or not custom_operators.cpu_kernel_in_python(op):
        return None
    if custom_operators.is_compiled(op):
        return None
    if rewritten := library_operators.BODIES.get(op.name()):
        return rewritten
    if definition := _definition(op):
        functions: Mapping[str | None, Callable[..., Any]] = definition._backend_fns
        return functions.get("cpu") or functions[None]
    key = next(key for key in _KEYS if custom_operators.has_kernel(op, key))
    return functools.partial(op._op_dk, key)


def _definition(op: Any) -> Any:
    """What ``torch.library.custom_op`` made of the operator's function, or None."""
    return OPDEFS.get(op._schema.name)


def _overload(func: Any, args: Any, kwargs: Any) -> Any:
    """The operator that a call is for, if it isn't PyTorch's own."""
    if isinstance(func, torch._ops.OpOverloadPacket):
        name = func._qualified_op_name
        if not is_own(name):
            return None
        overload = torch._C._jit_resolve_packet(name, *args, **kwargs)
        func = getattr(func, overload or "default")
    return func if custom_operators.is_custom(func) else None


def _guards_on_sizes(ep: ExportedProgram) -> list[Any]:
    mode: Any = detect_fake_mode([node.meta.get("val") for node in nodes_of(ep)])
    return mode.shape_env.guards if mode is not None and mode.shape_env is not None else []


def _reason(error: Exception) -> str:
    text = str(error)
    if ".numpy()" in text or "NumPy" in text:
        return "it computes with NumPy"
    if "data-dependent" in text.lower():
        return (
            "it needs the values of a tensor (torch.where and torch.cond choose by values within "
            "a program)"
        )
    if "data pointer" in text:
        return "it passes the memory of a tensor to code that isn't PyTorch's"
    line = next((line.strip() for line in text.splitlines() if line.strip()), "")
    return f"{type(error).__name__}: {line[:_LONGEST]}" if line else type(error).__name__
