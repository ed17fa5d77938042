"""The benchmark of throughput: several callers of one model, side by side. See README.md."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from benchmarks.harness import contestants, machine, preparation, throughput_report
from benchmarks.harness.config import Model
from benchmarks.harness.files import PACKAGE, ROOT, Files, default_cache
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
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", nargs="+", choices=names, default=names, metavar="MODEL")
    parser.add_argument(
        "--contestants", nargs="+", choices=CONTESTANTS, default=CONTESTANTS, metavar="CONTESTANT"
    )
    parser.add_argument("--callers", type=int, nargs="+", default=CALLERS, metavar="N")
    parser.add_argument("--quick", action="store_true", help="little effort, to see that it works")
    parser.add_argument("--rounds", type=int, help="of each case (5)")
    parser.add_argument("--out", type=Path, default=Path("benchmark-results"))
    parser.add_argument("--cache", type=Path, help="where the contestants' files are kept")
    parser.add_argument("--markdown", type=Path, help="also write the numbers as this page")
    parser.add_argument("--from-json", type=Path, help="report on these results, measure nothing")
    parser.epilog = "models: " + ", ".join(names) + "; contestants: " + ", ".join(CONTESTANTS)
    args = parser.parse_args()
    # Paths are relative to where the user called Bazel.
    here = Path(os.environ.get("BUILD_WORKING_DIRECTORY", "."))
    for name in ("out", "cache", "markdown", "from_json"):
        if getattr(args, name):
            setattr(args, name, here / getattr(args, name))
    return args


def measure(files: Files, args: argparse.Namespace) -> Throughputs:
    facts = machine.describe()
    setting = contestants.Setting(
        root=ROOT,
        cache=args.cache or default_cache(),
        runfiles=files.variables,
        level=facts["level"],
        launcher=files.path(f"{PACKAGE}/launcher"),
    )
    cpus = min(facts["cores"], 2)
    effort = QUICK if args.quick else Effort()
    if args.rounds:
        effort = Effort(args.rounds, effort.seconds)
    results = Throughputs(facts, cpus, {})
    for description in files.descriptions():
        if description["name"] not in args.models:
            continue
        steps = contestants.steps_for(args.contestants)
        prepared = preparation.prepare(setting, description, steps)
        if reason := prepared.problems["module"]:
            sys.exit(f"{description['name']}: {reason}")
        model = Model.read(prepared.folder / "model.json")
        results.titles[model.name] = model.title
        benchmark = ThroughputBenchmark(setting, model, prepared, list(args.contestants), cpus)
        for callers in args.callers:
            for threads in sorted({1, cpus}):
                note(f"{model.name}: {callers} callers, calls with {threads} thread(s)")
                results.entries += benchmark.measure(callers, threads, effort)
    return results


def main() -> None:
    files = Files()
    args = parse_arguments([description["name"] for description in files.descriptions()])
    if args.from_json:
        results = Throughputs.from_json(args.from_json.read_text(encoding="utf-8"))
    else:
        results = measure(files, args)
    args.out.mkdir(parents=True, exist_ok=True)
    (args.out / "throughput.json").write_text(results.to_json() + "\n", encoding="utf-8")
    if args.markdown:
        args.markdown.write_text(throughput_report.page(results), encoding="utf-8")
    print(throughput_report.text(results))
    note(f"written to {args.out}/throughput.json")


if __name__ == "__main__":
    main()
