"""Where the time of a decoded token goes: see README.md."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Mapping

from benchmarks.harness import machine
from benchmarks.harness.files import PACKAGE, Files
from benchmarks.harness.process import on_cpus
from benchmarks.profile import table

PRECISIONS = ("float32", "bfloat16", "int8", "int4")


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--precisions", nargs="+", choices=PRECISIONS, default=PRECISIONS)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--contexts", type=int, nargs="+", default=[128, 1500])
    parser.add_argument("--rounds", type=int, default=5, help="of each case; the fastest counts")
    parser.add_argument("--seconds", type=float, default=1, help="of each round")
    parser.add_argument(
        "--copy-weights", action="store_true", help="load with LoadOptions::copy_weights"
    )
    parser.add_argument(
        "--functions", action="store_true", help="print the functions with the most samples, too"
    )
    return parser.parse_args()


def output(command: list[str], threads: int, variables: Mapping[str, str]) -> str:
    with on_cpus(machine.cpus_for(threads)):
        done = subprocess.run(command, env=variables, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(done.stderr.strip() or f"{command[0]} failed with code {done.returncode}")
    return done.stdout


def main() -> None:
    args = parse_arguments()
    files = Files()
    programs = {name: files.path(f"{PACKAGE}/decode_profile_{name}") for name in args.precisions}
    rate_program = files.path(f"{PACKAGE}/memory_rate")
    rates: dict[int, float] = {}
    cases: dict[table.Case, table.Profile] = {}
    for round_number in range(args.rounds):
        for threads in args.threads:
            rate = float(output([rate_program, str(threads), "1"], threads, files.variables))
            rates[threads] = max(rate, rates.get(threads, 0.0))
            for name, program in programs.items():
                for context in args.contexts:
                    command = [program, str(threads), str(context), str(args.seconds)]
                    if args.copy_weights:
                        command.append("--copy-weights")
                    last = round_number == args.rounds - 1
                    if args.functions and last:
                        command.append("--functions")
                    line, *functions = output(command, threads, files.variables).splitlines()
                    case = table.Case(name, threads, context)
                    found = table.Profile(**json.loads(line))
                    cases[case] = min(cases.get(case, found), found, key=lambda p: p.ms)
                    if functions:
                        print(f"\n{case}", *functions, sep="\n")
    print(table.render(cases, rates))


if __name__ == "__main__":
    main()
