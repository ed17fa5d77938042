"""The benchmark on a GPU: latency, start and memory beside PyTorch. See README.md."""

from __future__ import annotations

import argparse
import dataclasses
import sys

from benchmarks.harness import arguments, cuda_report, gpu, machine, preparation
from benchmarks.harness.config import Model
from benchmarks.harness.files import Files
from benchmarks.harness.measure import QUICK, Effort, ModelBenchmark, note
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
    effort = QUICK if args.quick else Effort()
    if args.rounds:
        effort = dataclasses.replace(effort, rounds=args.rounds)
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
        results.models[model.name] = {
            "title": model.title,
            "precision": model.precision,
            "cases": model.cases,
            "tokens": model.tokens,
        } | prepared.facts
    threads = facts["cores"]
    for benchmark in benchmarks:
        note(f"{benchmark.model.name}: latency")
        results.latencies += benchmark.latencies(threads, effort)
        note(f"{benchmark.model.name}: start and memory")
        results.starts += benchmark.starts(threads, effort, gpu.used_memory)
    return results


def main() -> None:
    files = Files()
    args = parse_arguments([description["name"] for description in files.descriptions()])
    if args.from_json:
        results = Results.from_json(args.from_json.read_text(encoding="utf-8"))
    else:
        results = measure(files, args)
    args.out.mkdir(parents=True, exist_ok=True)
    (args.out / "cuda.json").write_text(results.to_json() + "\n", encoding="utf-8")
    if args.markdown:
        args.markdown.write_text(cuda_report.markdown(results), encoding="utf-8")
    print(cuda_report.render(results))
    note(f"written to {args.out}/cuda.json")


if __name__ == "__main__":
    main()
