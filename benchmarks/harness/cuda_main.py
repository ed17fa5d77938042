"""The benchmark on a GPU: latency, start and memory beside PyTorch. See README.md."""

from __future__ import annotations

import argparse
import dataclasses
import sys

from benchmarks.harness import arguments, cuda_report, gpu, machine, output, preparation
from benchmarks.harness.budget import Budget
from benchmarks.harness.config import Model
from benchmarks.harness.files import Files
from benchmarks.harness.measure import Effort, ModelBenchmark, note
from benchmarks.harness.results import Results


def parse_arguments(names: list[str]) -> argparse.Namespace:
    parser = arguments.parser(__doc__, names, cuda_report.CONTESTANTS)
    parser.add_argument(
        "--python",
        default="",
        help="an interpreter with a torch for CUDA, NumPy and gguf, for eager PyTorch and "
        "torch.compile; without it, they don't take part",
    )
    return arguments.parsed(parser)


def measure(files: Files, args: argparse.Namespace) -> Results:
    facts = machine.describe() | gpu.describe()
    setting = files.setting(args.cache, facts["level"])
    setting = dataclasses.replace(
        setting, runfiles=dict(setting.runfiles) | gpu.variables(), cuda_python=args.python
    )
    names = [n for n in cuda_report.CONTESTANTS if not args.contestants or n in args.contestants]
    effort = Effort.of(args)
    results = Results(facts, {}, {})
    benchmarks = []
    for description in files.descriptions():
        if description["name"] not in args.models:
            continue
        prepared = preparation.prepare(setting, description, ["module"])
        if reason := prepared.problems["module"]:
            sys.exit(f"{description['name']}: {reason}")
        model = Model.read(prepared.folder / "model.json")
        benchmarks.append(ModelBenchmark(setting, model, prepared, names))
        results.add(model, prepared.facts)
    threads = facts["cores"]
    budget = Budget(args.minutes, [w for b in benchmarks for w in (len(b.model.cases), 1)])
    for benchmark in benchmarks:
        note(f"{benchmark.model.name}: latency")
        results.latencies += benchmark.latencies(threads, effort.until(budget.deadline()))
        note(f"{benchmark.model.name}: start and memory")
        results.starts += benchmark.starts(
            threads, effort.until(budget.deadline()), gpu.used_memory
        )
    return results


def main() -> None:
    files = Files()
    args = parse_arguments([description["name"] for description in files.descriptions()])
    output.report(
        args,
        "cuda",
        lambda: measure(files, args),
        Results.from_json,
        cuda_report.render,
        cuda_report.markdown,
    )


if __name__ == "__main__":
    main()
