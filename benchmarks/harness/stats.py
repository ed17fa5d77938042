"""Statistics of repeated measurements."""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections.abc import Iterable, Sequence


@dataclasses.dataclass(frozen=True)
class Sample:
    """A quantity that was measured several times; `median` of the rounds' medians."""

    minimum: float
    median: float
    rounds: int

    @classmethod
    def of(cls, values: Sequence[float]) -> Sample:
        """From one value per measurement."""
        return cls.of_rounds([(value, value) for value in values])

    @classmethod
    def of_rounds(cls, rounds: Sequence[tuple[float, float]]) -> Sample:
        """From the minimum and the median of each round."""
        if not rounds:
            raise ValueError("nothing was measured")
        return cls(
            minimum=min(low for low, _ in rounds),
            median=statistics.median(middle for _, middle in rounds),
            rounds=len(rounds),
        )


def geometric_mean(values: Iterable[float]) -> float | None:
    """Of ratios: the mean that doesn't depend on which side is the unit. None of nothing."""
    logarithms = [math.log(value) for value in values]
    return math.exp(sum(logarithms) / len(logarithms)) if logarithms else None


def spread(sample: Sample) -> float:
    """How far the median is above the minimum, as a fraction: large on a busy machine."""
    return sample.median / sample.minimum - 1 if sample.minimum > 0 else math.inf
