"""Compares tensors with expected ones, and keeps the largest errors for a report."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import torch

# dtype -> (relative, absolute) tolerance. Compiled code adds in another order than eager, and may
# keep float32 where eager rounds to 16 bits between two operators.
DEFAULT_TOLERANCES: dict[torch.dtype, tuple[float, float]] = {
    torch.float64: (1e-7, 1e-9),
    torch.float32: (1e-4, 1e-4),
    torch.complex64: (1e-4, 1e-4),
    torch.float16: (1e-2, 1e-2),
    torch.bfloat16: (3e-2, 3e-2),
}

# Those of numbers that come out of a model whose weights and products are int8.
INT8_TOLERANCES = (1e-1, 1e-1)


@dataclasses.dataclass(frozen=True)
class Worst:
    """The largest error so far: how large, at which index, and both values there."""

    error: float = 0.0
    index: tuple[int, ...] = ()
    got: object = None
    expected: object = None
    where: str = ""

    def __str__(self) -> str:
        if not self.where:
            return "0"
        place = f"[{', '.join(map(str, self.index))}]"
        return f"{self.error:.3g} at {place} ({self.got} for {self.expected}; {self.where})"


@dataclasses.dataclass
class OutputReport:
    """The errors of one output in the calls so far.

    defaults: the tolerances that it has if the user gives none; without them, those of its dtype.
    """

    name: str
    dtype: torch.dtype
    defaults: tuple[float, float] | None = None
    calls: int = 0
    absolute: Worst = dataclasses.field(default_factory=Worst)
    relative: Worst = dataclasses.field(default_factory=Worst)
    failures: list[str] = dataclasses.field(default_factory=list)


def compare(
    report: OutputReport,
    got: torch.Tensor | None,
    expected: torch.Tensor,
    where: str,
    tolerances: tuple[float | None, float | None] = (None, None),
) -> None:
    """Adds one call's value of an output to its report.

    An element is correct if ``|got - expected| <= rtol * |expected| + atol * max(1, scale)``, where
    scale is the root mean square of the expected elements: an element that is near zero by
    cancellation is as accurate as the numbers that it was computed from. NaN is correct where NaN
    is expected.
    """
    report.calls += 1
    if got is None:
        report.failures.append(f"{where}: missing")
        return
    if got.shape != expected.shape or got.dtype != expected.dtype:
        report.failures.append(f"{where}: is {_text(got)}, expected {_text(expected)}")
        return
    if expected.numel() == 0:
        return
    wide_got, wide = _widen(got), _widen(expected)
    error = (wide_got - wide).abs().to(torch.float64)
    same = (got == expected) | (wide_got.isnan() & wide.isnan())
    error = torch.where(same, 0.0, error)
    # float64 can't represent small differences of integers above 2**53.
    error = torch.where(~same & (error == 0), 1.0, error)
    error = torch.where(error.isnan(), math.inf, error)
    magnitude = wide.abs().to(torch.float64)
    finite = magnitude[magnitude.isfinite()]
    scale = max(1.0, float(finite.square().mean().sqrt()) if finite.numel() else 1.0)
    rtol, atol = _tolerances(report.defaults or DEFAULT_TOLERANCES.get(expected.dtype), tolerances)
    floor = max(atol * scale, torch.finfo(torch.float64).tiny)
    relative = torch.where(same, 0.0, error / magnitude.clamp(min=floor))
    report.absolute = _worse(report.absolute, error, got, expected, where)
    report.relative = _worse(report.relative, relative, got, expected, where)
    allowed = rtol * torch.where(magnitude.isfinite(), magnitude, 0.0) + atol * scale
    if wrong := int((error > allowed).sum()):
        worst = _worse(Worst(), error, got, expected, "")
        place = f"[{', '.join(map(str, worst.index))}]"
        report.failures.append(
            f"{where}: {wrong} of {expected.numel()} elements differ; the largest error is "
            f"{worst.error:.3g} at {place}: got {worst.got}, expected {worst.expected} "
            f"(rtol {rtol:g}, atol {atol:g})"
        )


def table(reports: Sequence[OutputReport]) -> str:
    """One paragraph per output: the largest errors, and whether they are within bounds."""
    lines = []
    for report in reports:
        verdict = "FAIL" if report.failures else "ok"
        dtype = str(report.dtype).removeprefix("torch.")
        lines.append(f"  {verdict:4} {report.name} ({dtype}, {report.calls} calls)")
        lines.append(f"         largest absolute error: {report.absolute}")
        lines.append(f"         largest relative error: {report.relative}")
    return "\n".join(lines)


def _tolerances(
    defaults: tuple[float, float] | None, given: tuple[float | None, float | None]
) -> tuple[float, float]:
    if defaults is None:
        return 0.0, 0.0  # integers and bools are compared exactly
    rtol, atol = given
    return defaults[0] if rtol is None else rtol, defaults[1] if atol is None else atol


def _widen(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.to(torch.complex128 if tensor.is_complex() else torch.float64)


def _worse(
    before: Worst, errors: torch.Tensor, got: torch.Tensor, expected: torch.Tensor, where: str
) -> Worst:
    position = int(errors.argmax())
    error = float(errors.flatten()[position])
    if error <= before.error:
        return before
    index = tuple(int(i) for i in torch.unravel_index(torch.tensor(position), errors.shape))
    return Worst(error, index, got[index].item(), expected[index].item(), where)


def _text(tensor: torch.Tensor) -> str:
    return f"{str(tensor.dtype).removeprefix('torch.')}{list(tensor.shape)}"
