from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.harness import charts, markdown, page, slower, tables, terminal
from benchmarks.harness.results import CONTESTANTS
from benchmarks.tests.example import results


@pytest.mark.parametrize(
    ("value", "text"),
    [(12.34, "12.3 s"), (0.00567, "5.67 ms"), (123e-6, "123 µs"), (5e-9, "5.00 ns")],
)
def test_seconds(value: float, text: str) -> None:
    assert tables.seconds(value) == text


@pytest.mark.parametrize(("value", "text"), [(999, "999 B"), (1.5e6, "1.50 MB"), (2e9, "2.00 GB")])
def test_size(value: float, text: str) -> None:
    assert tables.size(value) == text


def test_terminal_shows_slims_time_and_the_others_ratio() -> None:
    text = terminal.render(results())
    row = next(line for line in text.splitlines() if line.startswith("Small, batch1, 1 thread"))
    assert row.split()[-4:] == ["1.00", "µs", "2.00", "-"]


def test_what_has_no_number_is_shown_with_its_reason() -> None:
    for text in (terminal.render(results()), page.render(results())):
        assert "openvino is not installed" in text
        assert "WRONG: error 7.0e-01" in text
    assert "openvino: openvino is not installed (small)" in markdown.render(results())


def test_reasons_name_each_model_once() -> None:
    found = results()
    found.latencies.append(found.latencies[2])
    key = ("openvino", "openvino is not installed")
    assert tables.reasons(found)[key] == ["small"]


def test_summary_tells_where_slim_is_slower() -> None:
    text = "\n".join(tables.summary(results()))
    assert "fastest in 1 of 2 cases" in text


def test_markdown_names_the_machine_and_has_tables_of_equal_width() -> None:
    text = markdown.render(results())
    assert "Some <CPU> (x86-64-v4), 2 cores of a virtual machine" in text
    for section in text.split("\n## ")[1:]:
        widths = {line.count("|") for line in section.splitlines() if line.startswith("|")}
        assert len(widths) <= 1


def test_a_loaded_machine_is_told() -> None:
    found = results()
    assert "only ratios mean something" not in markdown.render(found)
    found.machine = found.machine | {"load_before": 1.1}
    for text in (markdown.render(found), terminal.render(found), page.render(found)):
        assert "only ratios mean something" in text


def test_spread_is_beside_each_time_and_one_round_is_marked() -> None:
    # Rounds of 0.9, 1 and 1.2 µs: the quartiles are 0.95 and 1.1.
    assert "| Small, batch1, 1 thread | 1.00 µs ±10 % | 2.00 µs ±10 % (2) | - |" in (
        markdown.render(results())
    )
    assert "| 100 ms ±10 % | 50.0 ms once (0.5) | WRONG |" in markdown.render(results())
    assert "1.00 µs ±10 %" in page.render(results()) and "50.0 ms once" in page.render(results())


def test_each_family_has_a_table_and_a_chart() -> None:
    titles = [table.title for table in tables.all_tables(results())]
    assert titles[:2] == ["Latency of small models", "Latency of the language model"]
    assert page.render(results()).count('aria-label="Latency of') == 2


def test_charts_draw_the_spread_of_what_has_rounds() -> None:
    small, llm = list(tables.all_tables(results()))[:2]
    assert charts.dot_plot(small.title, small.rows).count('class="spread"') == 2
    assert charts.dot_plot(llm.title, llm.rows).count('class="spread"') == 1


def test_memory_of_a_call_is_compared_with_the_fastest_peer() -> None:
    row = "| Small, batch1, 1 thread | 10.0 kB | 40.0 kB (4) |  | 0.25 of eager |"
    assert row in markdown.render(results())


def test_where_slim_is_slower_and_why() -> None:
    found = results()
    (unknown,) = slower.explained(found, [])
    assert (unknown[0].peer, unknown[0].ratio, unknown[1]) == ("eager", 2.0, slower.UNKNOWN)
    known = slower.known_reasons('[{"models": ["llm"], "peers": ["eager"], "reason": "so"}]')
    assert slower.explained(found, known)[0][1] == "so"
    other = slower.known_reasons('[{"models": ["llm"], "threads": [2], "reason": "so"}]')
    assert slower.explained(found, other)[0][1] == slower.UNKNOWN
    row = f"| A & B, decode, 1 thread | 2.00 | eager PyTorch | {slower.UNKNOWN} |"
    assert row in markdown.render(found)
    assert f"<td>eager PyTorch</td><td>{slower.UNKNOWN}</td>" in page.render(found)
    assert f"2.00 of eager PyTorch: {slower.UNKNOWN}" in terminal.render(found)


def test_reasons_are_those_of_models_cases_and_peers_that_there_are() -> None:
    build = (Path(slower.__file__).parents[1] / "BUILD.bazel").read_text(encoding="utf-8")
    for reason in slower.known_reasons():
        for model in reason.models:
            assert f'"{model}"' in build
        assert set(reason.peers) <= set(CONTESTANTS)
    with pytest.raises(ValueError, match="must have models and reason"):
        slower.known_reasons('[{"model": "llm", "reason": "so"}]')


def test_page_is_self_contained_and_escaped() -> None:
    text = page.render(results())
    assert "Some &lt;CPU&gt;" in text and "A &amp; B, decode" in text
    assert "http" not in text and "<script" not in text


def test_page_has_a_colour_for_every_contestant() -> None:
    text = page.render(results())
    for name in CONTESTANTS:
        assert f".{charts.css_class(name)} {{ fill:" in text


def test_charts_are_valid_and_have_a_dot_per_number() -> None:
    for table in tables.all_tables(results()):
        picture = charts.dot_plot(table.title, table.rows)
        dots = [e for e in ElementTree.fromstring(picture).iter() if e.tag == "circle"]
        numbers = [c for row in table.rows for c in row.cells.values() if c.ratio is not None]
        assert len(dots) == len(numbers) > 0


@given(st.lists(st.floats(1e-4, 1e5), min_size=1))
def test_axis_holds_all_values(values: list[float]) -> None:
    low, high = charts.axis_ends(values)
    assert low <= min([*values, 1.0]) * 1.001 and high >= max([*values, 1.0]) * 0.999
    for value in values:
        assert charts.LABELS <= charts.position(value, low, high) <= charts.WIDTH


def test_ticks_are_round_and_inside() -> None:
    assert charts.ticks(0.5, 5.0) == pytest.approx([0.5, 1.0, 2.0, 5.0])
    assert charts.ticks(0.1, 1000.0) == pytest.approx([0.1, 1.0, 10.0, 100.0, 1000.0])
