"""Matrix products of the slim runtime beside those that PyTorch has, in one run.

Each shape is m x k x n with a weight [n, k], as torch.nn.Linear has it. Candidates take turns, and
the best time of each counts, so that other load on the machine hits all of them alike.

    AOTI_SLIM_LIBRARY=libslim.so gemm_bench.py [--level v3] [--threads 2] [--json FILE]

oneDNN is asked for the same instructions by ONEDNN_MAX_CPU_ISA=AVX2 in the environment.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import sys
import time
from collections.abc import Callable
from typing import Any

# The packed 4-bit weights are those of AVX2: see runtime/slim/kernels/quantized.h.
os.environ.setdefault("ATEN_CPU_CAPABILITY", "avx2")

import harness
import torch
from aoti_driver.packing import matmul

LEVELS = ["baseline", "v3", "v4"]
SHAPES = [
    (1, 384, 1024),
    (1, 576, 1536),
    (1, 1536, 576),
    (1, 576, 49152),
    (8, 576, 1536),
    (16, 576, 1536),
    (128, 384, 1024),
    (512, 512, 512),
]
INT4_GROUP = 64
NO_AMX = "bf16 no AMX"

Candidate = Callable[[], object]


class Bench:
    """Keeps what the candidates' handles borrow."""

    def __init__(self, slim: harness.Slim) -> None:
        self.slim = slim
        self.library = slim.library
        self._kept: list[Any] = []

    def handle(self, tensor: torch.Tensor) -> ctypes.c_void_p:
        self._kept.append(tensor)
        return self.slim.borrow(tensor)

    def packed(self, weight: torch.Tensor, kind: str) -> ctypes.c_void_p:
        data = matmul.pack(kind, weight)
        memory = torch.empty(data.numel() + 64, dtype=torch.uint8)
        start = -memory.data_ptr() % 64
        memory[start : start + data.numel()] = data
        name = kind.encode()
        self._kept += [memory, name]
        handle = self.handle(weight.t())
        address = ctypes.c_void_p(memory.data_ptr() + start)
        size = ctypes.c_size_t(data.numel())
        assert self.library.aoti_slim_set_packed(handle, name, address, size) == 0
        return handle

    def mm(self, out: torch.Tensor, x: torch.Tensor, weight: ctypes.c_void_p) -> Candidate:
        function = self.library.aoti_torch_cpu_mm_out
        handles = (self.handle(out), self.handle(x), weight)
        return lambda: function(*handles)

    def int8(self, x: torch.Tensor, weight: torch.Tensor, scales: torch.Tensor) -> Candidate:
        handles = [self.handle(tensor) for tensor in (x, weight, scales)]
        library, result = self.library, ctypes.c_void_p()

        def call() -> None:
            library.aoti_torch_cpu__weight_int8pack_mm(*handles, ctypes.byref(result))
            library.aoti_torch_delete_tensor_object(result)

        return call

    def int4(self, x: torch.Tensor, weight: torch.Tensor, scales: torch.Tensor) -> Candidate:
        handles = [self.handle(tensor) for tensor in (x, weight, scales)]
        library, stack = self.library, (ctypes.c_uint64 * 4)()
        own = [ctypes.c_void_p() for _ in handles]

        def call() -> None:
            for handle, box in zip(handles, own, strict=True):
                library.aoti_torch_new_tensor_handle(handle, ctypes.byref(box))
            stack[0], stack[1], stack[3] = (box.value or 0 for box in own)
            stack[2] = INT4_GROUP
            library.aoti_torch_call_dispatcher(b"aten::_weight_int4pack_mm_for_cpu", b"", stack)
            library.aoti_torch_delete_tensor_object(ctypes.c_void_p(stack[0]))

        return call


def best_times(
    slim: harness.Slim, candidates: dict[str, Candidate], seconds: float
) -> dict[str, float]:
    best = dict.fromkeys(candidates, float("inf"))
    end = time.perf_counter() + seconds
    rounds = 0
    while rounds < 5 or time.perf_counter() < end:
        rounds += 1
        for name, call in candidates.items():
            slim.library.aoti_slim_allow_amx(int(name != NO_AMX))
            call()
            for _ in range(2):
                start = time.perf_counter()
                call()
                best[name] = min(best[name], time.perf_counter() - start)
    return best


def candidates_of(bench: Bench, m: int, k: int, n: int) -> dict[str, Candidate]:
    x, weight, out = torch.randn(m, k), torch.randn(n, k), torch.empty(m, n)
    theirs = torch.ops.mkldnn._reorder_linear_weight(weight, m)
    linear = torch.ops.mkldnn._linear_pointwise
    weight16, x16, out16 = weight.bfloat16(), x.bfloat16(), out.bfloat16()
    int8 = torch.randint(-128, 128, (n, k), dtype=torch.int8)
    scales8 = torch.rand(n).bfloat16()
    int4 = torch.ops.aten._convert_weight_to_int4pack_for_cpu(
        torch.randint(0, 16, (n, k), dtype=torch.int32), 2
    )
    scales4 = torch.rand(k // INT4_GROUP, n, 2).bfloat16()
    return {
        "onednn": lambda: linear(x, theirs, None, "none", [], ""),
        "mkl": lambda: torch.mm(x, weight.t(), out=out),
        "slim": bench.mm(out, x, bench.handle(weight.t())),
        "slim packed": bench.mm(out, x, bench.packed(weight, "gemm_f32")),
        "bf16 torch": lambda: torch.mm(x16, weight16.t(), out=out16),
        "bf16 slim": bench.mm(out16, x16, bench.handle(weight16.t())),
        NO_AMX: bench.mm(out16, x16, bench.handle(weight16.t())),
        "bf16 slim packed": bench.mm(out16, x16, bench.packed(weight16, "gemm_bf16")),
        "int8 torch": lambda: torch.ops.aten._weight_int8pack_mm(x16, int8, scales8),
        "int8 slim": bench.int8(x16, int8, scales8),
        "int4 torch": lambda: torch.ops.aten._weight_int4pack_mm_for_cpu(
            x16, int4, INT4_GROUP, scales4
        ),
        "int4 slim": bench.int4(x16, int4, scales4),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--level", choices=LEVELS)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=1.0, help="for each shape")
    parser.add_argument("--json", help="a file for the figures")
    parser.add_argument("shapes", nargs="*", help="1x576x1536")
    arguments = parser.parse_args()
    shapes = [tuple(map(int, shape.split("x"))) for shape in arguments.shapes] or SHAPES

    slim = harness.load()
    torch.set_num_threads(arguments.threads)
    slim.library.aoti_slim_test_set_threads(arguments.threads)
    level = LEVELS.index(arguments.level) if arguments.level else -1
    slim.library.aoti_slim_set_cpu_level(level)

    figures: list[dict[str, Any]] = []
    for m, k, n in shapes:
        bench = Bench(slim)  # as long as its handles
        times = best_times(slim, candidates_of(bench, m, k, n), arguments.seconds)
        rates = {name: 2e-9 * m * k * n / seconds for name, seconds in times.items()}
        if not figures:
            print(f"{'GFLOP/s':>16}", *(f"{name:>16}" for name in rates), f"{'packed/onednn':>14}")
        ratio = rates["slim packed"] / rates["onednn"]
        print(f"{f'{m}x{k}x{n}':>16}", *(f"{r:16.1f}" for r in rates.values()), f"{ratio:14.2f}")
        sys.stdout.flush()
        figures.append({"m": m, "k": k, "n": n, "gflops": rates, "packed/onednn": ratio})
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as file:
            json.dump({"threads": arguments.threads, "shapes": figures}, file, indent=1)


if __name__ == "__main__":
    main()
