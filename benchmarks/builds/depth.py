"""How a build grows with the number of layers of a decoder. See benchmarks/README.md.

usage: depth.py [--blocks-only] [LAYERS...]

Each step is a process of its own, and its time is that of the CPU, without the import of torch: a
machine that does something else at the same time changes it little.
"""

from __future__ import annotations

import ctypes
import gc
import importlib
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

LAYERS = (12, 30, 80)
ROOT = Path(__file__).absolute().parents[2]
SOURCES = ("benchmarks/models/deep.py", "models/smollm2/model.py", "models/smollm2/gguf_weights.py")
SPEC = {
    "label": "//benchmarks:deep",
    "name": "deep",
    "inputs": {
        "attention_mask": "int64[1, total] in 0..1",
        "cache_position": "int64[seq] in 0..255",
        "input_ids": "int64[1, seq] in 0..511",
    },
    "sample_inputs": "benchmarks.models.deep:sample_inputs",
    "dynamic_dims": {"seq": "1..256", "total": "1..256"},
    "strict": False,
    "decompositions": [],
    "method": None,
}
# Fewer operators than this are never left out: what is generated has no functions for blocks.
NEVER = 10**9
ROUNDS = 9
CALLS = 5


def export(folder: Path, layers: int) -> None:
    from aoti_driver.process import cli

    spec = {**SPEC, "entry_point": f"benchmarks.models.deep:build_{layers}"}
    outs = {"graph": "graph.json", "weights": "weights.safetensors", "manifest": "manifest.json"}
    arguments = [
        "export",
        f"--spec={json.dumps(spec)}",
        *(f"--source=_main/{name}={ROOT / name}" for name in SOURCES),
        "--import_root=_main",
        *(f"--out_{flag}={folder / name}" for flag, name in outs.items()),
    ]
    if cli.main(arguments):
        sys.exit("the export failed")


def codegen(folder: Path, whole: bool) -> None:
    from aoti_driver.inductor import short_programs

    from tests.unit.driver.inductor import harness

    if whole:
        short_programs.LEAST_SAVED = NEVER
    harness.generate(folder, "deep")


def compile_code(folder: Path) -> None:
    from tests.unit.driver.inductor import harness

    tables = folder / "tables.cpp"
    tables.write_text(harness.tables_source(["deep"]), encoding="utf-8")
    objects = harness.compile_sources([*harness.sources(folder), tables])
    own, _ = harness.compile_threads(folder)
    harness.link([*objects, own], folder / "deep.so")


def latency(*folders: Path) -> dict[str, Any]:
    """Milliseconds of a call of each, in turns: 64 tokens, and one after 128."""
    import torch

    from tests.unit.driver.inductor import harness

    torch.set_num_threads(1)
    loaded = []
    for folder in folders:
        library = ctypes.CDLL(str(folder / "deep.so"))
        library.set_cpus(1)
        loaded.append(harness.Compiled(library, "deep", folder))
    times: dict[str, list[list[float]]] = {}
    equal = True
    for name, seq, total in (("prefill", 64, 64), ("decode", 1, 129)):
        inputs = (
            torch.arange(seq)[None] % 512,
            torch.ones(1, total, dtype=torch.int64),
            torch.arange(total - seq, total),
        )
        results = [one(*inputs) for one in loaded]
        equal &= all(torch.equal(results[0][0], other[0]) for other in results[1:])
        times[name] = [[] for _ in loaded]
        for i in range(ROUNDS):
            for j in range(len(loaded)):
                which = (i + j) % len(loaded)
                begun = time.perf_counter()
                for _ in range(CALLS):
                    loaded[which](*inputs)
                times[name][which].append((time.perf_counter() - begun) / CALLS * 1e3)
    medians = {name: [statistics.median(one) for one in of_all] for name, of_all in times.items()}
    return {**medians, "equal": equal}


def step(name: str, *arguments: str) -> None:
    """Runs in a process of its own, and prints seconds and results."""
    from aoti_driver.process import preloaded, worker

    for module in (*preloaded.FIRST, *preloaded.LATER):
        importlib.import_module(module)  # as a worker has
    worker.keep()
    gc.set_threshold(*worker.COLLECT_AFTER)
    folder = Path(arguments[0])
    before = _cpu()
    found: dict[str, Any] = {}
    if name == "export":
        export(folder, int(arguments[1]))
    elif name == "codegen":
        codegen(folder, arguments[1] == "whole")
    elif name == "compile":
        compile_code(folder)
    else:
        found = latency(*map(Path, arguments))
    print(json.dumps({"cpu": _cpu() - before, **found}))


def _cpu() -> float:
    kinds = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    return sum(u.ru_utime + u.ru_stime for u in map(resource.getrusage, kinds))


def run(*arguments: object) -> dict[str, Any]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    command = [sys.executable, __file__, "--step", *map(str, arguments)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(command)}:\n{done.stdout}{done.stderr}")
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def measure(scratch: Path, layers: int, *, blocks_only: bool) -> dict[str, str]:
    blocks, whole = scratch / f"{layers}", scratch / f"{layers}_whole"
    row: dict[str, str] = {"layers": str(layers)}
    blocks.mkdir()
    row["export, s"] = f"{run('export', blocks, layers)['cpu']:.1f}"
    whole.mkdir()
    for name in ("graph.json", "manifest.json", "weights.safetensors"):
        (whole / name).symlink_to(blocks / name)
    of_whole: dict[str, str] = {}
    folders = [blocks] if blocks_only else [blocks, whole]
    for folder in folders:
        kind = "whole" if folder == whole else "blocks"
        found = {
            "code, s": f"{run('codegen', folder, kind)['cpu']:.1f}",
            "compile, s": f"{run('compile', folder)['cpu']:.1f}",
            "wrapper, KB": f"{(folder / 'wrapper.cpp').stat().st_size / 1e3:.0f}",
            "library, KB": f"{_stripped(folder / 'deep.so') / 1e3:.0f}",
        }
        (of_whole if folder == whole else row).update(found)
    for name, value in of_whole.items():
        row[name] = f"{row[name]} ({value})"
    times = run("latency", *folders)
    for name in ("prefill", "decode"):
        ours, *others = (f"{milliseconds:.2f}" for milliseconds in times[name])
        row[f"{name}, ms"] = f"{ours} ({others[0]})" if others else ours
    if not blocks_only:
        row["results"] = "equal" if times["equal"] else "DIFFERENT"
    return row


def _stripped(path: Path) -> int:
    target = path.with_suffix(".stripped")
    subprocess.run(["strip", "-o", target, path], check=True)
    return target.stat().st_size


def main() -> None:
    if sys.argv[1:2] == ["--step"]:
        step(*sys.argv[2:])
        return
    arguments = sys.argv[1:]
    blocks_only = "--blocks-only" in arguments
    layers = [int(argument) for argument in arguments if argument != "--blocks-only"]
    if not blocks_only:
        print("In parentheses: without functions for blocks.", flush=True)
    header = False
    with tempfile.TemporaryDirectory() as scratch:
        for count in layers or LAYERS:
            row = measure(Path(scratch), count, blocks_only=blocks_only)
            if not header:
                print(f"| {' | '.join(row)} |\n|{'---|' * len(row)}")
                header = True
            print(f"| {' | '.join(row.values())} |", flush=True)


if __name__ == "__main__":
    main()
