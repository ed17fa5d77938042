"""The report on a GPU: tables of ratios, as text and as Markdown."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping

from benchmarks.harness.results import Results
from benchmarks.harness.tables import reasons, seconds, size
from benchmarks.harness.terminal import aligned

# In the order of the reports. The first one that has a number is the unit of the ratios.
CONTESTANTS = {
    "cuda": "rules_aoti",
    "cuda-graphs": "rules_aoti, cuda_graphs",
    "eager-cuda": "eager PyTorch",
    "compile-cuda": "torch.compile",
    "compile-graphs-cuda": 'torch.compile, "reduce-overhead"',
}


@dataclasses.dataclass(frozen=True)
class Table:
    title: str
    rows: list[list[str]]  # the first one has the columns' names


def render(results: Results) -> str:
    parts = [_machine(results), ""]
    for table in tables(results):
        parts += [table.title, *aligned(table.rows), ""]
    return "\n".join(parts + _problems(results))


def markdown(results: Results) -> str:
    parts = [
        "# On a GPU",
        "",
        "Written by `./bazelw run //benchmarks:cuda -- --markdown PAGE`.",
        "",
    ]
    parts += [_machine(results), ""]
    for table in tables(results):
        head, *rows = ["| " + " | ".join(row) + " |" for row in table.rows]
        parts += [f"**{table.title}**", "", head, "|---" * len(table.rows[0]) + "|", *rows, ""]
    return "\n".join([*parts, *(f"- {line}" for line in _problems(results)), ""])


def tables(results: Results) -> list[Table]:
    latencies, tokens = [], []
    for model, case, _, entries in results.latency_rows():
        title = f"{results.models[model]['title']}, {case}"
        medians = {name: e.seconds.median for name, e in entries.items() if e.seconds}
        problems = {name: e.problem for name, e in entries.items() if e.problem}
        latencies.append([title, *_cells(medians, problems, seconds)])
        rates = {n: rate for n, e in entries.items() if (rate := results.tokens_per_second(e))}
        if rates:
            tokens.append([title, *_cells(rates, problems, lambda rate: f"{rate:.0f}/s")])
    starts, on_gpu, on_host = [], [], []
    for model, begun in results.start_rows():
        title = results.models[model]["title"]
        problems = {name: start.problem for name, start in begun.items() if start.problem}
        times = {name: s.seconds.median for name, s in begun.items() if s.seconds}
        starts.append([title, *_cells(times, problems, seconds)])
        known = {name: float(s.gpu_memory) for name, s in begun.items() if s.gpu_memory}
        on_gpu.append([title, *_cells(known, problems, size)])
        host = {name: float(s.peak_memory) for name, s in begun.items() if s.peak_memory}
        on_host.append([title, *_cells(host, problems, size)])
    head = ["", *CONTESTANTS.values()]
    return [
        Table(title, [head, *rows])
        for title, rows in {
            "Latency: median time of a call, tensors on the GPU": latencies,
            "Tokens per second": tokens,
            "Cold start: from exec to the first result": starts,
            "GPU memory after the first call, the process's whole": on_gpu,
            "Host memory, the largest resident size": on_host,
        }.items()
        if rows
    ]


def _cells(
    values: Mapping[str, float], problems: Mapping[str, str], text: Callable[[float], str]
) -> list[str]:
    """The first contestant's number, and the ratios to it."""
    unit = next((values[name] for name in CONTESTANTS if values.get(name)), None)
    cells = []
    for name in CONTESTANTS:
        value = values.get(name)
        if value is None or unit is None:
            cells.append("WRONG" if problems.get(name, "").startswith("WRONG") else "-")
        elif value is unit:
            cells.append(text(value))
        else:
            cells.append(f"{value / unit:.2f}")
    return cells


def _machine(results: Results) -> str:
    facts = results.machine
    text = f"{facts['gpu']}, CUDA {facts['cuda']}; {facts['cpu']}, {facts['cores']} CPUs. "
    if facts["emulator"]:
        return text + "This is the emulator of the driver: its times mean nothing."
    return text + "Numbers without a unit are relative to the first one of their row."


def _problems(results: Results) -> list[str]:
    return [f"{name}: {reason} ({', '.join(m)})" for (name, reason), m in reasons(results).items()]
