"""Shares the time of a run between its parts."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence


class Budget:
    """So many minutes for parts that run one after the other.

    A part that needs less than its share leaves the rest to those after it. Without minutes there
    is no limit.
    """

    def __init__(
        self,
        minutes: float | None,
        weights: Sequence[float],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._clock = clock
        self._end = math.inf if minutes is None else clock() + minutes * 60
        self._left = list(weights)

    def deadline(self) -> float:
        """When the next part should end."""
        now = self._clock()
        share = self._left[0] / sum(self._left)
        del self._left[0]
        return now + max(self._end - now, 0.0) * share
