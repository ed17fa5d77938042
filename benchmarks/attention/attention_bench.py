"""scaled_dot_product_attention of slim beside PyTorch's, in one run, as ratios.

    AOTI_SLIM_LIBRARY=libslim.so PYTHONPATH=runtime/slim/tests python attention_bench.py [json file]

A ratio below 1: slim is faster. Both alternate, the fastest of many calls counts.
"""

from __future__ import annotations

import ctypes
import json
import math
import os
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from harness import Slim, load
from torch import Tensor
from torch.nn import functional

NAME = "aoti_torch_cpu__scaled_dot_product_flash_attention_for_cpu"
LEVELS = {"AVX512": [1, 2], "AVX2": [1], "DEFAULT": [0]}
LEVEL_NAMES = ["baseline", "x86-64-v3", "x86-64-v4", "neon"]


@dataclass(frozen=True)
class Case:
    """filled: positions of the cache in use; 0: no mask."""

    name: str
    batch: int
    heads: int
    key_heads: int
    queries: int
    keys: int
    depth: int
    causal: bool = False
    filled: int = 0
    cache: bool = False
    dtype: torch.dtype = torch.float32


CASES = [
    Case("decode, 2048 keys", 1, 9, 3, 1, 2048, 64, cache=True),
    Case("decode, 300 keys", 1, 9, 3, 1, 300, 64, cache=True),
    Case("decode, 2048 keys, 100 filled", 1, 9, 3, 1, 2048, 64, filled=100, cache=True),
    Case("decode, 12 heads, 512 keys", 1, 12, 12, 1, 512, 64),
    Case("decode, bf16, 2048 keys", 1, 9, 3, 1, 2048, 64, cache=True, dtype=torch.bfloat16),
    Case("prefill 128", 1, 9, 9, 128, 128, 64, causal=True),
    Case("prefill 512", 1, 9, 9, 512, 512, 64, causal=True),
    Case("prefill 128 into a cache", 1, 9, 3, 128, 2048, 64, filled=128, cache=True),
    Case("prefill 512, bf16", 1, 9, 9, 512, 512, 64, causal=True, dtype=torch.bfloat16),
    Case("prefill 512, depth 128", 1, 8, 8, 512, 512, 128, causal=True),
    Case("encoder 2x32", 2, 12, 12, 32, 32, 64),
    Case("encoder 8x128", 8, 12, 12, 128, 128, 64),
    Case("encoder 1x197", 1, 12, 12, 197, 197, 64),
    Case("small 1x16, depth 16", 1, 4, 4, 16, 16, 16),
]


def inputs(case: Case) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
    q = torch.randn(case.batch, case.queries, case.heads, case.depth).transpose(1, 2)
    sides = torch.randn(2, case.batch, case.keys, case.key_heads, case.depth)
    k, v = (side.transpose(1, 2) for side in sides)
    if not case.cache:
        k, v = k.contiguous(), v.contiguous()
    mask = None
    if case.filled:
        mask = torch.full((case.queries, case.keys), -math.inf)
        for row in range(case.queries):
            mask[row, : case.filled - case.queries + row + 1] = 0
        mask = mask.to(case.dtype)
    q, k, v = (x.to(case.dtype) for x in (q, k, v))
    return q, k, v, mask


def slim_call(slim: Slim, case: Case, operands: tuple[Tensor | None, ...]) -> Callable[[], None]:
    """The bare C function: no conversion of arguments is timed."""
    handles = [None if x is None else slim.borrow(x) for x in operands]
    function = getattr(slim.library, NAME)
    delete = slim.library.aoti_torch_delete_tensor_object
    results = [ctypes.c_void_p(), ctypes.c_void_p()]
    mask = None if handles[3] is None else ctypes.byref(handles[3])
    arguments = (*handles[:3], ctypes.c_double(0), ctypes.c_int32(case.causal), mask, None)
    pointers = [ctypes.byref(result) for result in results]

    def call() -> None:
        status = function(*arguments, *pointers)
        assert status == 0
        delete(results[0])
        delete(results[1])

    return call


def torch_call(case: Case, operands: tuple[Tensor | None, ...]) -> Callable[[], object]:
    q, k, v, mask = operands
    assert q is not None and k is not None and v is not None
    options = {"attn_mask": mask, "is_causal": case.causal}
    grouped = case.key_heads != case.heads
    return lambda: functional.scaled_dot_product_attention(
        q,
        k,
        v,
        enable_gqa=grouped,
        **options,  # type: ignore[arg-type]
    )


def fastest(calls: list[Callable[[], object]], seconds: float) -> list[float]:
    """The fastest time of each, in seconds; they take turns."""
    best = [math.inf] * len(calls)
    until = time.perf_counter() + seconds
    for call in calls * 3:
        call()
    while time.perf_counter() < until:
        for i, call in enumerate(calls):
            for _ in range(3):
                start = time.perf_counter()
                call()
                best[i] = min(best[i], time.perf_counter() - start)
    return best


def main() -> None:
    slim = load()
    capability = torch.backends.cpu.get_cpu_capability()
    levels = LEVELS.get(capability, [3])
    seconds = float(os.environ.get("AOTI_BENCH_SECONDS", "0.4"))
    threads = int(os.environ.get("AOTI_BENCH_THREADS", "1"))
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])  # slim takes what there is
    torch.set_num_threads(threads)
    rows = []
    print(f"torch {torch.__version__} ({capability}), {threads} thread(s); slim / torch")
    for case in CASES:
        operands = inputs(case)
        line = f"{case.name:32}"
        for level in levels:
            slim.library.aoti_slim_set_cpu_level(level)
            own, theirs = fastest(
                [slim_call(slim, case, operands), torch_call(case, operands)], seconds
            )
            line += f"  {LEVEL_NAMES[level]} {own / theirs:5.2f} ({own * 1e6:7.1f} us)"
            values = asdict(case) | {"dtype": str(case.dtype), "level": LEVEL_NAMES[level]}
            rows.append(values | {"slim_us": own * 1e6, "torch_us": theirs * 1e6})
        print(line, flush=True)
    if len(sys.argv) > 1:
        report = {"torch": torch.__version__, "threads": threads, "cases": rows}
        Path(sys.argv[1]).write_text(json.dumps(report, indent=1), encoding="utf-8")


if __name__ == "__main__":
    torch.manual_seed(0)
    with torch.no_grad():
        main()
