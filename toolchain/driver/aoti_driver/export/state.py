"""Detects a forward() that changes the module's attributes, which torch.export silently ignores.

The exported program keeps only parameters and buffers. A Python attribute that forward() assigns is
fixed at its value during tracing, so the second call is wrong.
"""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import hashlib
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import torch
from torch.utils import _pytree as pytree

from aoti_driver.base.errors import DriverError

_MODULE_FIELDS = frozenset(torch.nn.Module().__dict__)
_DEPTH = 6
# Tracing and C++ kernels may differ from eager by rounding; lost state makes much larger
# differences.
_RELATIVE, _ABSOLUTE = 2e-2, 1e-3


@dataclasses.dataclass(frozen=True)
class Snapshot:
    attributes: Mapping[str, str]
    buffers: Mapping[str, str]


def own(value: Any) -> Any:
    """The value with copies of its tensors, which may be views of memory that the next call
    changes.
    """
    return pytree.tree_map_only(torch.Tensor, lambda t: t.detach().clone(), value)


class Trials:
    """Provides modules for calls that must not change ``module``, which is exported.

    build: builds the module again, for modules that can't be copied.
    """

    def __init__(
        self, module: torch.nn.Module, build: Callable[[], torch.nn.Module], label: str
    ) -> None:
        self.module = module
        self._build = build
        self._label = label
        self._writes_parameters = False

    @contextlib.contextmanager
    def module_to_try(self) -> Iterator[torch.nn.Module | None]:
        """A module like ``module`` with state of its own; None if there is no way to make one.

        It shares the parameters, which may be large. A forward() that writes to them is noticed
        after its first trial; then ``module`` is built again.
        """
        copied = clone(self.module, share=not self._writes_parameters)
        versions = _versions(self.module)
        yield copied if copied is not None else self._built_anew()
        if _versions(self.module) != versions:
            self._writes_parameters = True
            module = self._built_anew()
            if module is None:
                raise DriverError(
                    f"{self._label}: forward() writes to the module's parameters, and the entry "
                    "point can't be called again to get them back. Make them buffers "
                    "(self.register_buffer), or let the entry point build a new module each time."
                )
            self.module = module

    def _built_anew(self) -> torch.nn.Module | None:
        try:
            module = self._build()
        except DriverError:  # the entry point may register something that exists already
            return None
        shared = {id(t) for t in _tensors(module)} & {id(t) for t in _tensors(self.module)}
        return None if module is self.module or shared else module


def clone(module: torch.nn.Module, share: bool = True) -> torch.nn.Module | None:
    """A module with its own buffers and attributes, and with the same parameters if ``share``; None
    if it can't be copied.
    """
    memo = {id(p): p for p in module.parameters()} if share else {}
    try:
        return copy.deepcopy(module, memo)
    except Exception:  # locks, generators, modules of C++: any error may come
        return None


def _tensors(module: torch.nn.Module) -> Iterator[torch.Tensor]:
    yield from module.parameters()
    yield from module.buffers()


def _versions(module: torch.nn.Module) -> list[int]:
    """The number of writes to each tensor, which torch counts."""
    return [0 if p.is_inference() else p._version for p in module.parameters()]


def snapshot(module: torch.nn.Module) -> Snapshot:
    attributes: dict[str, str] = {}
    buffers: dict[str, str] = {}
    for prefix, part in module.named_modules():
        dot = f"{prefix}." if prefix else ""
        for name, value in vars(part).items():
            if name not in _MODULE_FIELDS:
                attributes[dot + name] = _print(value)
        for name, buffer in part.named_buffers(recurse=False):
            buffers[dot + name] = _tensor_print(buffer)
    return Snapshot(attributes, buffers)


def changed(before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    names = dict.fromkeys([*before, *after])
    return [n for n in names if before.get(n) != after.get(n)]


def differences(expected: Any, actual: Any) -> str | None:
    """How two results differ (structure, shape, dtype, values), or None."""
    wanted = pytree.tree_leaves(expected)
    got = pytree.tree_leaves(actual)
    if len(wanted) != len(got):
        return f"{len(got)} results in place of {len(wanted)}"
    for i, (a, b) in enumerate(zip(wanted, got)):
        where = "" if len(wanted) == 1 else f"result {i}: "
        if not isinstance(a, torch.Tensor) or not isinstance(b, torch.Tensor):
            if (
                isinstance(a, (int, float, str, bool))
                and not isinstance(b, torch.Tensor)
                and not _same_number(a, b)
            ):
                return f"{where}{b} in place of {a}"
            continue
        if a.shape != b.shape or a.dtype != b.dtype:
            return f"{where}{b.dtype}{list(b.shape)} in place of {a.dtype}{list(a.shape)}"
        if problem := _value_difference(a, b):
            return where + problem
    return None


def _same_number(a: Any, b: Any) -> bool:
    if not isinstance(a, float) or not isinstance(b, float):
        return bool(a == b)
    close = math.isclose(a, b, rel_tol=_RELATIVE, abs_tol=_ABSOLUTE)
    return close or (math.isnan(a) and math.isnan(b))


def _value_difference(a: torch.Tensor, b: torch.Tensor) -> str | None:
    if a.numel() == 0:
        return None
    if a.dtype.is_complex:
        a, b = torch.view_as_real(a), torch.view_as_real(b)
    if not a.dtype.is_floating_point:
        wrong = int((a != b).sum())
        return f"{wrong} of {a.numel()} elements differ" if wrong else None
    if a.dtype.itemsize == 1:  # small dtypes lack arithmetic
        a, b = a.float(), b.float()
    # Most elements are equal bit by bit; only the others are converted to double, to save memory.
    differ = a != b
    if not differ.any():
        return None
    scale = a.abs().nan_to_num(0, 0, 0).max().item()
    a, b = a[differ].double(), b[differ].double()
    if torch.allclose(b, a, rtol=_RELATIVE, atol=_ABSOLUTE + _RELATIVE * scale, equal_nan=True):
        return None
    worst = (a - b).abs().nan_to_num(float("inf")).max().item()
    return f"largest difference {worst:.3g} (largest value {scale:.3g})"


def _print(value: Any, depth: int = 0, above: Iterable[int] = ()) -> str:
    """A text that is equal for equal contents; objects that can't be compared give the same
    text.
    """
    if isinstance(value, torch.Tensor):
        return _tensor_print(value)
    if value is None or isinstance(value, (bool, int, float, complex, str, bytes)):
        return repr(value)
    if depth >= _DEPTH or id(value) in above:
        return type(value).__name__
    inside = (*above, id(value))
    if isinstance(value, Mapping):
        items = [f"{k!r}: {_print(v, depth + 1, inside)}" for k, v in value.items()]
        return "{" + ", ".join(items) + "}"
    if isinstance(value, (set, frozenset)):
        return "{" + ", ".join(sorted(_print(v, depth + 1, inside) for v in value)) + "}"
    if isinstance(value, (list, tuple)) or type(value).__name__ == "deque":
        return "[" + ", ".join(_print(v, depth + 1, inside) for v in value) + "]"
    if isinstance(value, (type, torch.nn.Module)) or callable(value):
        return type(value).__name__
    fields = getattr(value, "__dict__", None)
    return type(value).__name__ + (_print(fields, depth + 1, inside) if fields else "")


def _tensor_print(tensor: torch.Tensor) -> str:
    if isinstance(tensor, torch.nn.Parameter) or tensor.is_meta:
        return "Parameter" if isinstance(tensor, torch.nn.Parameter) else "meta"
    try:
        raw = tensor.detach().contiguous().reshape(-1).view(torch.uint8).numpy()
        digest = hashlib.blake2b(raw, digest_size=16).hexdigest()  # type: ignore[arg-type]
    except (RuntimeError, TypeError, ValueError):  # sparse, quantized, subclasses
        digest = type(tensor).__name__
    return f"{tensor.dtype}{list(tensor.shape)}:{digest}"
