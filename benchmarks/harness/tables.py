"""The tables of a report, as rows of numbers and texts; how they look is decided elsewhere."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator

from benchmarks.harness.families import FAMILIES
from benchmarks.harness.machine import warning
from benchmarks.harness.results import (
    CONTESTANTS,
    OURS,
    Latency,
    Results,
    Start,
    fastest_peer,
    mean_ratios,
    medians,
    own_value,
    ratios,
)
from benchmarks.harness.slower import NOISE, comparisons
from benchmarks.harness.stats import Sample, spread


@dataclasses.dataclass(frozen=True)
class Cell:
    """A contestant's number in a row."""

    text: str
    ratio: float | None = None  # relative to slim's
    problem: str = ""
    mark: str = ""  # how far rounds differ
    ends: tuple[float, float] | None = None  # the quartiles of the rounds, as ratios


@dataclasses.dataclass(frozen=True)
class Row:
    title: str
    cells: dict[str, Cell]


@dataclasses.dataclass(frozen=True)
class Table:
    title: str
    note: str
    rows: list[Row]
    contestants: list[str]


def seconds(value: float) -> str:
    """Three digits and a unit."""
    for factor, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")):
        if value >= factor:
            return f"{_digits(value / factor)} {unit}"
    return f"{_digits(value / 1e-9)} ns"


def size(value: float) -> str:
    """Bytes, in units of 1,000."""
    for factor, unit in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if value >= factor:
            return f"{_digits(value / factor)} {unit}"
    return f"{value:.0f} B"


def _digits(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def mark(sample: Sample) -> str:
    """How far the middle half of the rounds is from the median."""
    return f"±{spread(sample):.0%}".replace("%", " %") if sample.rounds > 1 else "once"


def with_spread(cell: Cell, sample: Sample) -> Cell:
    """The cell of a sample's median, with how far its rounds differ."""
    ends = None
    if cell.ratio and sample.rounds > 1:
        one = sample.median / cell.ratio
        ends = (sample.lower / one, sample.upper / one)
    return dataclasses.replace(cell, mark=mark(sample), ends=ends)


def short(problem: str) -> str:
    """A problem as a cell shows it; the reason stands below the table."""
    return "WRONG" if problem.startswith("WRONG") else "-"


def _cells(
    values: dict[str, float], problems: dict[str, str], text: Callable[[float], str]
) -> dict[str, Cell]:
    relative = ratios(values)
    cells = {name: Cell(text(value), relative.get(name)) for name, value in values.items()}
    for name, problem in problems.items():
        cells[name] = Cell(short(problem), problem=problem)
    return {name: cells[name] for name in CONTESTANTS if name in cells}


def _row_title(results: Results, model: str, case: str) -> str:
    return f"{results.models[model]['title']}, {case}"


def row_title(results: Results, model: str, case: str, threads: int) -> str:
    return f"{_row_title(results, model, case)}, {threads} thread" + ("s" if threads != 1 else "")


def latency_table(results: Results, family: str) -> Table:
    """Of the models of a family, with each number of threads."""
    rows = []
    for model, case, threads, entries in results.latency_rows():
        if results.models[model]["family"] != family:
            continue
        problems = {name: entry.problem for name, entry in entries.items() if entry.problem}
        cells = _cells(medians(entries), problems, seconds)
        for name, entry in entries.items():
            if entry.seconds and name in cells:
                cells[name] = with_spread(cells[name], entry.seconds)
        rows.append(Row(row_title(results, model, case, threads), cells))
    return Table(
        f"Latency of {FAMILIES[family]}",
        "Median time of a call, and after ± how far from it the middle half of the rounds lies.",
        rows,
        [name for name in results.contestants() if any(name in row.cells for row in rows)],
    )


BESIDE_FASTEST = "slim / fastest peer"


def memory_table(results: Results) -> Table | None:
    """What calls need beyond the loaded model."""
    rows = []
    for model, case, threads, entries in results.latency_rows():
        values = {
            name: float(entry.call_memory)
            for name, entry in entries.items()
            if entry.call_memory is not None and not entry.problem
        }
        if not values:
            continue
        cells = _cells(values, {}, size)
        best = fastest_peer(medians(entries))
        own = own_value(values)
        if best and own is not None and (of_best := values.get(best[0])):
            cells[BESIDE_FASTEST] = Cell(f"{own / of_best:.2f} of {best[0]}")
        rows.append(Row(row_title(results, model, case, threads), cells))
    if not rows:
        return None
    return Table(
        "Memory of a call",
        "How much the resident size of the process grows from the loaded model to the peak of a "
        "call, without the pages of files, so without weights that are mapped. A process keeps "
        "some of what earlier, smaller cases needed. The last column compares slim with the peer "
        "that is the fastest one in the row.",
        rows,
        [*results.contestants(), BESIDE_FASTEST],
    )


def token_table(results: Results) -> Table | None:
    """Tokens per second, and for decoding the share of what memory allows."""
    rows = []
    for model, case, threads, entries in results.latency_rows():
        rates = {}
        shares = {}
        for name, entry in entries.items():
            if rate := results.tokens_per_second(entry):
                rates[name] = rate
                shares[name] = results.share_of_memory_rate(entry)
        relative = ratios(rates)
        cells = {}
        for name, rate in rates.items():
            share = shares[name]
            text = f"{rate:.0f}/s" + (f", {share:.0%} of memory" if share else "")
            cells[name] = Cell(text, relative.get(name))
        if cells:
            rows.append(Row(row_title(results, model, case, threads), cells))
    if not rows:
        return None
    allowed = ", ".join(
        f"{rate / 1e9:.1f} GB/s with {threads}" for threads, rate in results.memory_rate.items()
    )
    return Table(
        "Tokens per second",
        "Ratios above 1 are faster than slim. Decoding a token reads every weight, and the keys "
        "and values of all tokens before it, once: the share is of the rate at which a loop can "
        f"merely read memory ({allowed}).",
        rows,
        results.contestants(),
    )


def _start_table(
    results: Results,
    title: str,
    note: str,
    value: Callable[[Start], float | None],
    text: Callable[[float], str],
    timed: bool = False,
) -> Table:
    rows = []
    for model, entries in results.start_rows():
        values = {
            name: number
            for name, entry in entries.items()
            if not entry.problem and (number := value(entry)) is not None
        }
        problems = {name: entry.problem for name, entry in entries.items() if entry.problem}
        cells = _cells(values, problems, text)
        if timed:
            for name, entry in entries.items():
                if entry.seconds and name in cells:
                    cells[name] = with_spread(cells[name], entry.seconds)
        rows.append(Row(results.models[model]["title"], cells))
    return Table(title, note, rows, results.contestants())


def start_tables(results: Results) -> list[Table]:
    return [
        _start_table(
            results,
            "Cold start",
            "Median time from exec to the first output, files in the page cache.",
            lambda start: start.seconds.median if start.seconds else None,
            seconds,
            timed=True,
        ),
        _start_table(
            results,
            "Peak memory beyond the mapped weights",
            "Largest resident size of a process that has made one call, without the pages of "
            "weight files, which processes share.",
            lambda start: float(start.peak_beyond_weights),
            size,
        ),
        _start_table(
            results,
            "Peak memory",
            "Largest resident size of the same process, with everything.",
            lambda start: float(start.peak_memory),
            size,
        ),
        _start_table(
            results,
            "On disk, without weights",
            "C++: the program and the libraries that it loads. Python: the installed packages that "
            "it needs, without the interpreter.",
            lambda start: float(start.program_bytes),
            size,
        ),
        _start_table(
            results,
            "On disk, with weights",
            "The same with the files that the model is read from.",
            lambda start: float(start.program_bytes + start.weight_bytes),
            size,
        ),
    ]


def all_tables(results: Results) -> Iterator[Table]:
    for family in results.families():
        yield latency_table(results, family)
    if tokens := token_table(results):
        yield tokens
    if memory := memory_table(results):
        yield memory
    yield from start_tables(results)


def reasons(results: Results) -> dict[tuple[str, str], list[str]]:
    """Why there is no number: (contestant, reason) -> the models."""
    found: dict[tuple[str, str], list[str]] = {}
    entries: list[Latency | Start] = [*results.latencies, *results.starts]
    for entry in entries:
        if entry.problem:
            models = found.setdefault((entry.contestant, entry.problem), [])
            if entry.model not in models:
                models.append(entry.model)
    return found


def summary(results: Results) -> list[str]:
    """The findings in a few sentences."""
    lines = []
    means = mean_ratios(results)
    others = ", ".join(
        f"{CONTESTANTS[name]} {value:.2f}" for name, value in means.items() if name != OURS[0]
    )
    if others:
        lines.append(f"Latency relative to slim, geometric mean of all cases: {others}.")
    found = [c.ratio for c in comparisons(results)]
    if found:
        fastest = sum(ratio <= 1 for ratio in found)
        near = sum(1 < ratio <= NOISE for ratio in found)
        lines.append(
            f"Slim is the fastest in {fastest} of {len(found)} cases, and takes at most "
            f"{NOISE - 1:.0%} longer than the fastest peer in {near} others.".replace("%", " %")
        )
    if any(entry.seconds and entry.seconds.rounds == 1 for entry in results.latencies):
        lines.append(
            '"once": a contestant that is far behind the fastest one, and whose call takes '
            "seconds, is measured by one call."
        )
    return lines


def machine_line(results: Results) -> str:
    """The machine, in a sentence."""
    facts = results.machine
    virtual = " of a virtual machine" if facts.get("virtual") else ""
    rates = ", ".join(
        f"{rate / 1e9:.1f} GB/s with {threads} thread(s)"
        for threads, rate in results.memory_rate.items()
    )
    return (
        f"{facts['cpu']} ({facts['level']}), {facts['cores']} cores{virtual}, "
        f"{size(facts['memory_bytes'])} memory, read at {rates}; {facts['system']}, "
        f"load before the run {facts['load_before']}.{warning(facts)}"
    )


def version_line(results: Results) -> str:
    versions = [f"{name} {version}" for name, version in results.machine["versions"].items()]
    return ", ".join([f"Python {results.machine['python']}", *versions]) + "."
