"""The report on throughput, as text and as a page of docs/."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.harness.machine import warning
from benchmarks.harness.markdown import table_lines
from benchmarks.harness.results import CONTESTANTS, OURS, ratios
from benchmarks.harness.tables import Cell, Row, Table, seconds, short, with_spread
from benchmarks.harness.terminal import table_text
from benchmarks.harness.throughput import Throughput, Throughputs

_Cells = Callable[[dict[str, Throughput]], dict[str, Cell]]


def tables(results: Throughputs) -> list[Table]:
    """Calls per second, the time of the slowest calls, and what a call costs the kernel."""
    return [
        _table(
            results,
            "Calls per second",
            "Of all callers together; after ± how far from it the middle half of the rounds lies.",
            _rates,
        ),
        _table(
            results,
            "Slow calls",
            "99 of 100 calls took no longer.",
            _slow_calls,
        ),
        _table(
            results,
            "Steady state",
            "Per call: pages that the kernel had to provide, how often a thread gave up its CPU to "
            "wait, and for slim what it allocated from the C library, the results included.",
            _steady_state,
        ),
    ]


def _table(results: Throughputs, title: str, note: str, cells: _Cells) -> Table:
    rows = []
    for (model, callers), entries in results.best().items():
        found = cells(entries)
        for name, entry in entries.items():
            if entry.problem:
                found[name] = Cell(short(entry.problem), problem=entry.problem)
        count = f"{callers} caller" + ("s" if callers != 1 else "")
        ordered = {name: found[name] for name in CONTESTANTS if name in found}
        rows.append(Row(f"{results.titles[model]}, {count}", ordered))
    names = {entry.contestant for entry in results.entries}
    return Table(title, note, rows, [name for name in CONTESTANTS if name in names])


def _rates(entries: dict[str, Throughput]) -> dict[str, Cell]:
    samples = {n: e.per_second for n, e in entries.items() if e.per_second}
    relative = ratios({n: sample.median for n, sample in samples.items()})
    return {
        n: with_spread(Cell(f"{sample.median:.3g}/s", relative.get(n)), sample)
        if sample.median < 100
        else with_spread(Cell(f"{sample.median:.0f}/s", relative.get(n)), sample)
        for n, sample in samples.items()
    }


def _slow_calls(entries: dict[str, Throughput]) -> dict[str, Cell]:
    samples = {n: e.p99_seconds for n, e in entries.items() if e.p99_seconds}
    relative = ratios({n: sample.median for n, sample in samples.items()})
    return {
        n: with_spread(Cell(seconds(sample.median), relative.get(n)), sample)
        for n, sample in samples.items()
    }


def _steady_state(entries: dict[str, Throughput]) -> dict[str, Cell]:
    return {
        name: Cell(
            f"{entry.faults:.2g} pages, {entry.waits:.2g} waits"
            + (f", {entry.allocations:.2g} allocations" if entry.allocations is not None else "")
        )
        for name, entry in entries.items()
        if entry.per_second
    }


def summary(results: Throughputs) -> list[str]:
    """Where slim serves most calls, and where another one does."""
    total, fewer = 0, []
    for (model, callers), entries in results.best().items():
        values = {n: e.per_second.median for n, e in entries.items() if e.per_second}
        own = [values[name] for name in OURS if name in values]
        peers = {name: value for name, value in values.items() if name not in OURS}
        if not own or not peers:
            continue
        total += 1
        best = max(peers, key=lambda name: peers[name])
        if peers[best] > max(own):
            share = max(own) / peers[best]
            title = f"{results.titles[model]}, {callers} caller(s)"
            fewer.append(f"{title}: {share:.2f} of {CONTESTANTS[best]}")
    lines = [f"Slim serves the most calls in {total - len(fewer)} of {total} cases."]
    if fewer:
        lines.append("It serves fewer in: " + "; ".join(fewer) + ".")
    return lines


def _machine(results: Throughputs) -> str:
    facts = results.machine
    virtual = " of a virtual machine" if facts.get("virtual") else ""
    versions = ", ".join(f"{name} {version}" for name, version in facts["versions"].items())
    return (
        f"{facts['cpu']} ({facts['level']}), {results.cpus} of {facts['cores']} cores{virtual}; "
        f"{facts['system']}, load before the run {facts['load_before']}.{warning(facts)} "
        f"{versions}."
    )


def text(results: Throughputs) -> str:
    parts = [_machine(results), "Numbers without a unit are relative to slim (slim = 1.00).\n"]
    parts += [table_text(table) for table in tables(results)]
    return "\n".join([*parts, *_reasons(results), *summary(results)])


def page(results: Throughputs) -> str:
    lines = [
        "# Throughput",
        "",
        "Written by `./bazelw run //benchmarks:throughput -- --markdown docs/throughput.md`; how "
        "it measures is described in "
        "[benchmarks/README.md](../benchmarks/README.md#throughput). In parentheses: relative to "
        "slim. Each contestant has the better of one thread and of all threads for a call. `once`: "
        "there was time for one round.",
        "",
        _machine(results),
        "",
        *(f"- {line}" for line in summary(results)),
        "",
    ]
    for table in tables(results):
        lines += table_lines(table)
    return "\n".join([*lines, *(f"- {reason}" for reason in _reasons(results))]).rstrip() + "\n"


def _reasons(results: Throughputs) -> list[str]:
    found = {f"{entry.contestant}: {entry.problem}" for entry in results.entries if entry.problem}
    return sorted(found)
