from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.harness.stats import Sample, geometric_mean, spread

positive = st.floats(1e-9, 1e9)


def test_sample_takes_the_least_minimum_and_the_median_of_medians() -> None:
    found = Sample.of_rounds([(3.0, 5.0), (1.0, 9.0), (2.0, 4.0)])
    assert found == Sample(minimum=1.0, median=5.0, rounds=3, lower=4.5, upper=7.0)


def test_sample_of_nothing_is_an_error() -> None:
    with pytest.raises(ValueError, match="nothing was measured"):
        Sample.of([])


@given(st.lists(positive, min_size=1))
def test_median_is_between_the_extremes(values: list[float]) -> None:
    found = Sample.of(values)
    assert found.minimum == min(values)
    assert min(values) <= found.lower <= found.median <= found.upper <= max(values)
    assert found.rounds == len(values)


@given(st.lists(positive, min_size=1, max_size=20))
def test_geometric_mean_of_inverses_is_the_inverse(values: list[float]) -> None:
    mean = geometric_mean(values)
    inverse = geometric_mean(1 / value for value in values)
    assert mean is not None and inverse is not None
    assert math.isclose(mean * inverse, 1.0, rel_tol=1e-6)


def test_geometric_mean() -> None:
    assert geometric_mean([]) is None
    assert geometric_mean([2.0, 8.0]) == pytest.approx(4.0)


def test_spread() -> None:
    # The quartiles are 2 and 5: the one farther from the median of 3 counts.
    assert spread(Sample.of([1.0, 2.0, 3.0, 5.0, 9.0])) == pytest.approx(2 / 3)
    assert spread(Sample.of([3.0])) == 0
