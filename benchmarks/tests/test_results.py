from __future__ import annotations

import pytest

from benchmarks.harness.results import (
    Results,
    Start,
    fastest_peer,
    mean_ratios,
    medians,
    ratios,
)
from benchmarks.tests.example import results


def test_json_keeps_everything() -> None:
    found = results()
    assert Results.from_json(found.to_json()) == found


def test_ratios_are_relative_to_the_first_slim_that_has_a_number() -> None:
    assert ratios({"slim-v4": 2.0, "slim-v3": 4.0, "eager": 3.0})["eager"] == 1.5
    assert ratios({"slim-v3": 4.0, "eager": 2.0}) == {"slim-v3": 1.0, "eager": 0.5}
    assert ratios({"eager": 2.0}) == {}


def test_fastest_peer_is_never_slim() -> None:
    assert fastest_peer({"slim-v4": 1.0, "eager": 3.0, "compile": 2.0}) == ("compile", 2.0)
    assert fastest_peer({"slim-v4": 1.0}) is None


def test_wrong_results_have_no_time() -> None:
    rows = {model: entries for model, _, _, entries in results().latency_rows()}
    assert rows["llm"]["openvino"].wrong
    assert set(medians(rows["llm"])) == {"slim-v4", "eager"}
    assert not rows["small"]["openvino"].wrong


def test_mean_ratios_over_cases() -> None:
    # Twice slim's time in one case, half of it in the other.
    assert mean_ratios(results()) == pytest.approx({"slim-v4": 1.0, "eager": 1.0})


def test_tokens_and_share_of_the_memory_rate() -> None:
    found = results()
    slim = next(e for e in found.latencies if e.model == "llm" and e.contestant == "slim-v4")
    assert found.tokens_per_second(slim) == pytest.approx(10)
    # 0.4 GB of weights, and 0.1 GB of keys and values, ten times per second, of 10 GB/s.
    assert found.share_of_memory_rate(slim) == pytest.approx(0.5)
    small = found.latencies[0]
    assert found.tokens_per_second(small) is None
    assert found.share_of_memory_rate(small) is None


def test_peak_beyond_weights() -> None:
    assert Start("m", "c", peak_memory=10, mapped_weights=4).peak_beyond_weights == 6
    assert Start("m", "c", peak_memory=3, mapped_weights=4).peak_beyond_weights == 0


def test_contestants_are_in_the_order_of_the_report() -> None:
    assert results().contestants() == ["slim-v4", "eager", "openvino"]
