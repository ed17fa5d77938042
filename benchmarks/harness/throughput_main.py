"""The benchmark of throughput: several callers of one model, side by side. See README.md."""

from __future__ import annotations

import argparse
import dataclasses
import sys

from benchmarks.harness import (
    arguments,
    contestants,
    machine,
    output,
    preparation,
    throughput_report,
)
from benchmarks.harness.budget import Budget
from benchmarks.harness.config import Model
from benchmarks.harness.files import Files
from benchmarks.harness.measure import note
from benchmarks.harness.throughput import (
    CALLERS,
    CONTESTANTS,
    QUICK,
    Effort,
    ThroughputBenchmark,
    Throughputs,
)


def parse_arguments(names: list[str]) -> argparse.Namespace:
    parser = arguments.parser(__doc__, names, CONTESTANTS)
    parser.add_argument("--callers", type=int, nargs="+", default=CALLERS, metavar="N")
    return arguments.parsed(parser)


def measure(files: Files, args: argparse.Namespace) -> Throughputs:
    facts = machine.describe()
    setting = files.setting(args.cache, facts["level"])
    cpus = min(facts["cores"], 2)
    effort = QUICK if args.quick else Effort()
    if args.rounds:
        effort = dataclasses.replace(effort, rounds=args.rounds)
    descriptions = [d for d in files.descriptions() if d["name"] in args.models]
    names = contestants.chosen(CONTESTANTS, args.contestants, descriptions, facts["level"])
    results = Throughputs(facts, cpus, {})
    benchmarks = []
    for description in descriptions:
        steps = contestants.steps_for(names)
        prepared = preparation.prepare(setting, description, steps)
        if reason := prepared.problems["module"]:
            sys.exit(f"{description['name']}: {reason}")
        model = Model.read(prepared.folder / "model.json")
        results.titles[model.name] = model.title
        benchmarks.append(ThroughputBenchmark(setting, model, prepared, names, cpus))
    parts = [
        (benchmark, callers, threads)
        for benchmark in benchmarks
        for callers in args.callers
        for threads in sorted({1, cpus})
    ]
    budget = Budget(args.minutes, [1] * len(parts))
    for benchmark, callers, threads in parts:
        note(f"{benchmark.model.name}: {callers} callers, calls with {threads} thread(s)")
        own = dataclasses.replace(effort, deadline=budget.deadline())
        results.entries += benchmark.measure(callers, threads, own)
    return results


def main() -> None:
    files = Files()
    args = parse_arguments([description["name"] for description in files.descriptions()])
    output.report(
        args,
        "throughput",
        lambda: measure(files, args),
        Throughputs.from_json,
        throughput_report.text,
        throughput_report.page,
    )


if __name__ == "__main__":
    main()
