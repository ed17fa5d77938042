"""Statistics of repeated measurements."""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections.abc import Iterable, Sequence


@dataclasses.dataclass(frozen=True)
class Sample:
    """A quantity that was measured several times; `median` and quartiles of the rounds' medians."""

    minimum: float
    median: float
    rounds: int
    lower: float
    upper: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Sample:
        """From one value per measurement."""
        return cls.of_rounds([(value, value) for value in values])

    @classmethod
    def of_rounds(cls, rounds: Sequence[tuple[float, float]]) -> Sample:
        """From the minimum and the median of each round."""
        if not rounds:
            raise ValueError("nothing was measured")
        medians = [middle for _, middle in rounds]
        lower, median, upper = (
            statistics.quantiles(medians, n=4, method="inclusive")
            if len(medians) > 1
            else medians * 3
        )
        return cls(
            minimum=min(low for low, _ in rounds),
            median=median,
            rounds=len(rounds),
            lower=lower,
            upper=upper,
        )


def geometric_mean(values: Iterable[float]) -> float | None:
    """Of ratios: the mean that doesn't depend on which side is the unit. None of nothing."""
    logarithms = [math.log(value) for value in values]
    return math.exp(sum(logarithms) / len(logarithms)) if logarithms else None


def spread(sample: Sample) -> float:
    """How far from the median the middle half of the rounds lies, as a fraction of it."""
    distance = max(sample.upper - sample.median, sample.median - sample.lower)
    return distance / sample.median if sample.median > 0 else math.inf
