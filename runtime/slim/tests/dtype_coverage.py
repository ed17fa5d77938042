"""Finds out which dtypes each operator of the slim runtime takes, by calling it.

``runtime/slim/dtypes.txt`` has the output of this module; builds use it to choose between slim and
libtorch. A line has functions and the dtypes of the calls that gave PyTorch's results: the dtypes
of the arguments and of the results, each named once ("float32,int64->float32"); "|" separates
results of the same arguments. Names begin as in PREFIXES, dtypes as in KINDS.

    python dtype_coverage.py    # prints the table; AOTI_SLIM_LIBRARY is the library to call
"""

from __future__ import annotations

import ctypes
import itertools
import re
from collections.abc import Iterator
from typing import Any

import detection
import dispatcher
import harness
import torch
from aoti_driver.artifacts.missing_functions import KINDS, PREFIXES
from operator_calls import ALL, CALLS, INDICES, Call, Maker
from torch import Tensor

_SHORT = {kind: short for short, kind in KINDS.items()}
_KIND = re.compile(rf"\b({'|'.join(_SHORT)})(?=\d)")
LAYOUTS = ["plain", "sliced"]
_TOLERANCES = {
    torch.float16: 2e-2,
    torch.bfloat16: 5e-2,
    torch.float32: 1e-4,
    torch.complex64: 1e-4,
    torch.float64: 1e-8,
    torch.complex128: 1e-8,
}


def signature(arguments: Any, results: Any) -> str:
    """
    >>> signature((torch.zeros(1), [torch.zeros(1).long()]), (torch.zeros(1).bool(),))
    'float32,int64->bool'
    """
    return "->".join(
        ",".join(sorted({str(t.dtype).removeprefix("torch.") for t in _tensors(side)}))
        for side in (arguments, results)
    )


def table(slim: harness.Slim) -> dict[str, list[str]]:
    """function: signatures. Raises an AssertionError if a result differs from PyTorch's."""
    found: dict[str, set[str]] = {}
    refused: dict[str, set[str]] = {}
    for call in CALLS:
        good, bad = found.setdefault(call.function, set()), refused.setdefault(call.function, set())
        for maker in _makers(call):
            expected = _expected(call, maker)
            if expected is None:
                continue
            arguments, results = expected
            text = signature(arguments, results)
            try:
                got = _run(slim, call, maker)
            except harness.OpError:
                bad.add(text)
                continue
            good.add(text)
            _compare(call, maker, got, results)
    # Dtypes that were refused once are not listed, whatever the layout or the option was.
    return {name: sorted(good - refused[name]) for name, good in sorted(found.items())}


def unlisted(functions: set[str]) -> list[str]:
    """The operators in functions.txt for which there is no call here."""
    prefixes = ("aoti_torch_cpu_", "aoti_torch_aten_", "aoti_slim_op_")
    operators = {name for name in functions if name.startswith(prefixes)}
    return sorted(operators - {call.function for call in CALLS})


def text(rows: dict[str, list[str]]) -> str:
    """The lines of the table, each for all functions that take the same dtypes."""
    functions: dict[tuple[str, ...], list[str]] = {}
    for name, signatures in rows.items():
        functions.setdefault(tuple(signatures), []).append(name)
    lines = (
        f"{' '.join(map(_shortened, names))}: {_joined(found)}"
        for found, names in functions.items()
    )
    return "".join(f"{line}\n" for line in lines)


def _shortened(name: str) -> str:
    for short, prefix in PREFIXES.items():
        if name.startswith(prefix):
            return short + name.removeprefix(prefix)
    return name


def _kind(match: re.Match[str]) -> str:
    return _SHORT[match[0]]


def _joined(signatures: tuple[str, ...]) -> str:
    """The results of the same arguments together.

    >>> _joined(("int8->bool", "int8->int8"))
    'i8->bool|i8'
    """
    results: dict[str, list[str]] = {}
    for arguments, result in (_KIND.sub(_kind, one).split("->") for one in signatures):
        results.setdefault(arguments, []).append(result)
    return " ".join(f"{arguments}->{'|'.join(found)}" for arguments, found in results.items())


def _makers(call: Call) -> Iterator[Maker]:
    ts = ALL if "t" in call.dtypes else [torch.float32]
    us = ALL if "u" in call.dtypes else [torch.float32]
    indices = INDICES if "i" in call.dtypes else [torch.int64]
    for t, u, i, layout in itertools.product(ts, us, indices, LAYOUTS):
        yield Maker(t, u, i, layout)


def _expected(call: Call, maker: Maker) -> tuple[Any, list[Tensor]] | None:
    """(arguments, PyTorch's results); None if PyTorch refuses the call."""
    maker.made = 0
    operator = _operator(call)
    torch.manual_seed(3)
    try:
        arguments, options = call.arguments(maker), call.options(maker)
        if call.reference is not None:
            maker.made = 0
            results = call.reference(maker)
        else:
            results = operator(*arguments, **options)
    except (RuntimeError, NotImplementedError, TypeError, IndexError, ValueError):
        return None
    tensors = [] if results is None else [t.resolve_conj() for t in _tensors(results)]
    if any(t.dtype not in ALL for t in tensors):
        return None  # complex32 is not listed, and no program calls slim for it
    return [*arguments, *options.values()], tensors


def _run(slim: harness.Slim, call: Call, maker: Maker) -> tuple[Tensor, ...]:
    maker.made = 0
    operator = _operator(call)
    schema = operator._schema.arguments
    arguments = call.arguments(maker)
    options = call.options(maker)
    values = [
        options[a.name] if a.name in options else a.default_value if i >= len(arguments)
        else arguments[i]
        for i, a in enumerate(schema)
    ]  # fmt: skip
    seed = slim.library.aoti_slim_manual_seed
    seed.argtypes, seed.restype = [ctypes.c_uint64], None
    seed(3)
    if call.function.startswith("aoti_slim_op_"):
        stack = [_boxed(value, argument.real_type) for value, argument in zip(values, schema)]
        count = len(operator._schema.returns)
        return dispatcher.call(slim, operator.name(), *stack, results=count)
    flat: list[Any] = []
    for value, argument in zip(values, schema):
        flat.append(value)
        if str(argument.real_type) == "Optional[Device]":
            flat.append(0)  # its index
    if call.function.endswith("_out"):
        expected = _expected(call, maker)
        assert expected is not None
        out = torch.empty_like(expected[1][0])
        if "randint" in call.function:
            flat = flat[:3]
        if "index_put" in call.function:
            flat.insert(2, len(flat[1]))
        slim.call(call.function, out, *flat)
        return (out,)
    results = slim.call(call.function, *flat)
    return results or (values[0],)  # in place


def _operator(call: Call) -> Any:
    namespace, _, name = call.operator.rpartition("::")
    if namespace == "torchvision":
        detection.register()
    packet, overload = name.rsplit(".", 1)
    return getattr(getattr(getattr(torch.ops, namespace or "aten"), packet), overload)


def _boxed(value: Any, kind: Any) -> Any:
    if isinstance(kind, torch.OptionalType):
        return None if value is None else dispatcher.Some(_boxed(value, kind.getElementType()))
    if isinstance(kind, torch.ListType):
        return dispatcher.List(_boxed(item, kind.getElementType()) for item in value)
    if isinstance(kind, torch.FloatType):
        return float(value)
    return value


def _compare(call: Call, maker: Maker, got: tuple[Tensor, ...], expected: list[Tensor]) -> None:
    compared = range(len(expected)) if call.compared is None else call.compared
    for i in compared:
        where = f"{call.function}, result {i} for {maker}"
        tolerance = _TOLERANCES.get(expected[i].dtype, 0)
        assert got[i].dtype == expected[i].dtype, where
        torch.testing.assert_close(
            got[i], expected[i], rtol=tolerance, atol=tolerance, equal_nan=True,
            msg=lambda message, where=where: f"{where}: {message}",  # type: ignore[misc]
        )  # fmt: skip


def _tensors(value: Any) -> list[Tensor]:
    if isinstance(value, Tensor):
        return [value]
    return [t for item in value for t in _tensors(item)] if isinstance(value, (list, tuple)) else []


if __name__ == "__main__":
    print(text(table(harness.load())), end="")
