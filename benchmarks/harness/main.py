"""The benchmark of the runtimes: latency, start, memory and size, side by side. See README.md."""

from __future__ import annotations

import argparse
import subprocess
import sys
import time

from benchmarks.harness import (
    arguments,
    contestants,
    machine,
    markdown,
    output,
    page,
    preparation,
    terminal,
)
from benchmarks.harness.budget import Budget
from benchmarks.harness.config import Model
from benchmarks.harness.files import PACKAGE, Files
from benchmarks.harness.measure import Effort, ModelBenchmark, note
from benchmarks.harness.process import on_cpus
from benchmarks.harness.results import CONTESTANTS, Results

# torch.compile takes minutes to compile.
NOT_IN_QUICK = ("compile", "slim-v3", "libtorch-v3")


def parse_arguments(names: list[str]) -> argparse.Namespace:
    parser = arguments.parser(__doc__, names, CONTESTANTS)
    parser.add_argument("--threads", type=int, nargs="+", help="thread counts to measure (1 2)")
    parser.add_argument("--prepare", action="store_true", help="only make the contestants' files")
    return arguments.parsed(parser)


def memory_rates(program: str, threads: list[int]) -> dict[int, float]:
    rates = {}
    for count in threads:
        with on_cpus(machine.cpus_for(count)):
            output = subprocess.check_output([program, str(count), "2"], text=True)
        rates[count] = float(output)
        note(f"memory is read at {rates[count] / 1e9:.1f} GB/s by {count} thread(s)")
    return rates


def measure(files: Files, args: argparse.Namespace) -> Results | None:
    """Everything; None if only the files were to be made."""
    facts = machine.describe()
    setting = files.setting(args.cache, facts["level"])
    all_descriptions = files.descriptions()
    names = contestants.chosen(CONTESTANTS, args.contestants, all_descriptions, facts["level"])
    left_out = set(NOT_IN_QUICK) if args.quick and not args.contestants else set()
    if facts["level"] != "x86-64-v4":
        left_out -= {"slim-v3", "libtorch-v3"}
    descriptions = [d for d in all_descriptions if d["name"] in args.models]
    benchmarks = []
    for description in descriptions:
        for name in left_out:
            description["without"] = description["without"] | {name: "left out of a quick run"}
        steps = contestants.steps_for([name for name in names if name not in left_out])
        prepared = preparation.prepare(setting, description, steps)
        if reason := prepared.problems["module"]:
            sys.exit(f"{description['name']}: {reason}")
        model = Model.read(prepared.folder / "model.json")
        if args.prepare:
            # The compiler's cache is a part of what is prepared.
            tried = [name for name in names if name in contestants.COMPILE_IN_CALLS]
        else:
            tried = names
        benchmarks.append(ModelBenchmark(setting, model, prepared, tried))

    effort = Effort.of(args)
    cores = facts["cores"]
    threads = args.threads or ([1] if args.quick else [n for n in (1, 2) if n <= cores])
    if args.prepare:
        for benchmark in benchmarks:
            for count in threads:
                note(f"{benchmark.model.name}: compiling with {count} thread(s)")
                benchmark.latencies(count, Effort(rounds=1, seconds=0))
        return None

    rates = memory_rates(files.path(f"{PACKAGE}/memory_rate"), threads)
    results = Results(facts, {}, rates)
    for benchmark in benchmarks:
        results.add(benchmark.model, benchmark.prepared.facts)
    begun = time.monotonic()
    # A start takes about as long as a case.
    weights = [[len(b.model.cases)] * len(threads) + [1] for b in benchmarks]
    budget = Budget(args.minutes, [weight for of_model in weights for weight in of_model])
    for benchmark in benchmarks:
        for count in threads:
            note(f"{minutes_since(begun)} {benchmark.model.name}: latency, {count} thread(s)")
            results.latencies += benchmark.latencies(count, effort.until(budget.deadline()))
        note(f"{minutes_since(begun)} {benchmark.model.name}: start and memory")
        results.starts += benchmark.starts(max(threads), effort.until(budget.deadline()))
    return results


def minutes_since(begun: float) -> str:
    seconds = int(time.monotonic() - begun)
    return f"{seconds // 60:2}:{seconds % 60:02}"


def main() -> None:
    files = Files()
    args = parse_arguments([description["name"] for description in files.descriptions()])
    output.report(
        args,
        "runtime",
        lambda: measure(files, args),
        Results.from_json,
        terminal.render,
        markdown.render,
        page.render,
    )


if __name__ == "__main__":
    main()
