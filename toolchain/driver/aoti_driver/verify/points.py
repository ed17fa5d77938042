"""The sizes of the dims that a test uses: both ends of each range, the sample's, and some
inside.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence

from aoti_driver.contract import conditions
from aoti_driver.contract.size_expr import SizeExpr

Sizes = dict[str, int]

_INSIDE = 3


def points(
    ranges: Mapping[str, tuple[int, int]],
    sample: Mapping[str, int],
    limit: int,
    guards: Sequence[SizeExpr] = (),
) -> list[Sizes]:
    """At most ``limit`` different assignments, the most useful ones first.

    guards: conditions that sizes must satisfy; sizes that do not are replaced by others near them.
    """
    chosen: list[Sizes] = []
    for candidate in _candidates(ranges, sample):
        fitting = conditions.satisfied(guards, ranges, candidate)
        if fitting is not None and fitting not in chosen:
            chosen.append(fitting)
        if len(chosen) >= max(limit, 1):
            break
    return chosen


def _candidates(
    ranges: Mapping[str, tuple[int, int]], sample: Mapping[str, int]
) -> Iterator[Sizes]:
    middle = {name: sample[name] for name in ranges}
    yield middle
    yield {name: low for name, (low, _) in ranges.items()}
    yield {name: high for name, (_, high) in ranges.items()}
    yield {name: _inside(name, 0, low, high) for name, (low, high) in ranges.items()}
    for name, (low, high) in ranges.items():
        yield {**middle, name: low}
        yield {**middle, name: high}
    for i in range(1, _INSIDE):
        yield {name: _inside(name, i, low, high) for name, (low, high) in ranges.items()}
    # Sizes beside the ends find errors in code for multiples of a vector's width.
    yield {name: min(low + 1, high) for name, (low, high) in ranges.items()}
    yield {name: max(high - 1, low) for name, (low, high) in ranges.items()}


def _inside(name: str, number: int, low: int, high: int) -> int:
    """A size in the range, small ones as often as large ones, and the same in every run."""
    digest = hashlib.sha256(f"{name}:{number}".encode()).digest()
    unit = int.from_bytes(digest[:6], "little") / 2**48
    return low + round((high - low + 1) ** unit) - 1 if high > low else low
