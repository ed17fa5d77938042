"""Convolutions of the slim runtime next to PyTorch's (oneDNN): ratios, as a table and as JSON.

    python conv_bench.py --library libslim.so [--threads 1 2] [--levels v3 v4] [--json results.json]

Weights are packed beforehand, as builds do; "unpacked" packs them in each call. "frozen" is oneDNN
with a weight in its own layout, as torch.compile with freezing calls it. A number is the least of
many runs; the engines take turns, so that a busy machine slows all of them alike.
"""

from __future__ import annotations

import argparse
import ctypes
import functools
import json
import multiprocessing
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch
    from harness import Slim

# The shim's level, and the name that oneDNN has for it.
_LEVELS = {"v3": (1, "AVX2"), "v4": (2, "AVX512_CORE")}

Row = dict[str, Any]


@dataclass(frozen=True)
class Layer:
    name: str
    batch: int
    channels: int
    size: tuple[int, ...]
    out: int
    kernel: int
    stride: int
    padding: int
    groups: int

    @property
    def dims(self) -> int:
        return len(self.size)

    def spatial(self) -> tuple[list[int], list[int], list[int]]:
        """Stride, padding, dilation."""
        return [self.stride] * self.dims, [self.padding] * self.dims, [1] * self.dims


# Name, input channels, size, output channels, kernel, stride, padding, groups.
_IMAGES = [
    ("stem 7x7/2", 3, 224, 64, 7, 2, 3, 1),
    ("stem 3x3/2", 3, 224, 32, 3, 2, 1, 1),
    ("3x3 64", 64, 56, 64, 3, 1, 1, 1),
    ("3x3 128", 128, 28, 128, 3, 1, 1, 1),
    ("3x3 256", 256, 14, 256, 3, 1, 1, 1),
    ("3x3 512", 512, 7, 512, 3, 1, 1, 1),
    ("3x3/2 64-128", 64, 56, 128, 3, 2, 1, 1),
    ("3x3/2 256-512", 256, 14, 512, 3, 2, 1, 1),
    ("1x1 64-256", 64, 56, 256, 1, 1, 0, 1),
    ("1x1 256-64", 256, 56, 64, 1, 1, 0, 1),
    ("1x1 512-128", 512, 28, 128, 1, 1, 0, 1),
    ("1x1 2048-512", 2048, 7, 512, 1, 1, 0, 1),
    ("1x1/2 256-512", 256, 56, 512, 1, 2, 0, 1),
    ("1x1 24-144", 24, 56, 144, 1, 1, 0, 1),
    ("1x1 144-24", 144, 56, 24, 1, 1, 0, 1),
    ("dw 3x3 96", 96, 112, 96, 3, 1, 1, 96),
    ("dw 3x3/2 96", 96, 112, 96, 3, 2, 1, 96),
    ("dw 3x3 384", 384, 14, 384, 3, 1, 1, 384),
    ("dw 5x5 240", 240, 28, 240, 5, 1, 2, 240),
    ("dw 5x5/2 144", 144, 56, 144, 5, 2, 2, 144),
    ("dw 7x7 96", 96, 56, 96, 7, 1, 3, 96),
    ("grouped 3x3 128/32", 128, 56, 128, 3, 1, 1, 32),
    ("grouped 3x3 256/32", 256, 28, 256, 3, 1, 1, 32),
    ("grouped 3x3 512/32", 512, 14, 512, 3, 1, 1, 32),
]
_LINES = [
    ("1d 10/5 1-512", 1, 16000, 512, 10, 5, 0, 1),
    ("1d 3/2 512", 512, 3199, 512, 3, 2, 0, 1),
    ("1d 3 384", 384, 1500, 384, 3, 1, 1, 1),
    ("1d 3 80-384", 80, 3000, 384, 3, 1, 1, 1),
]


def layers(batch: int) -> list[Layer]:
    return [
        Layer(f"{name} b{batch}", batch, channels, (size,) * dims, *others)
        for dims, table in ((2, _IMAGES), (1, _LINES))
        for name, channels, size, *others in table
    ]


class SlimCall:
    """A call of the shim's function with arguments made once."""

    def __init__(
        self, slim: Slim, tensors: tuple[torch.Tensor, ...], layer: Layer, *, packed: bool
    ) -> None:
        from aoti_driver.packing import convolution

        self._native = slim.library
        handles = [slim.borrow(tensor) for tensor in tensors]
        self._keep: list[object] = [tensors, handles]
        weight = tensors[1]
        if packed:
            kind = convolution.kind_of(weight, layer.groups, transposed=False)
            assert kind is not None
            data, name = convolution.pack(kind, weight, layer.groups), kind.encode()
            self._keep += [data, name]
            self._native.aoti_slim_set_packed(
                handles[1], name, ctypes.c_void_p(data.data_ptr()), ctypes.c_size_t(data.numel())
            )
        lists = [
            part
            for values in (*layer.spatial(), [0] * layer.dims)
            for part in ((ctypes.c_int64 * layer.dims)(*values), ctypes.c_int64(layer.dims))
        ]
        self._result = ctypes.c_void_p()
        self._arguments = [
            *(handles[0], handles[1], ctypes.byref(handles[2])),
            *(*lists[:6], ctypes.c_int32(0), *lists[6:]),
            *(ctypes.c_int64(layer.groups), ctypes.byref(self._result)),
        ]

    def __call__(self) -> None:
        if self._native.aoti_torch_cpu_convolution(*self._arguments) != 0:
            raise RuntimeError(self._native.torch_exception_get_what_without_backtrace())
        self._native.aoti_torch_delete_tensor_object(self._result)


def torch_calls(
    x: torch.Tensor, w: torch.Tensor, b: torch.Tensor, layer: Layer
) -> dict[str, Callable[[], Any]]:
    import torch

    stride, padding, dilation = layer.spatial()
    aten, mkldnn = torch.ops.aten, torch.ops.mkldnn
    others = (stride, padding, dilation, False, [0] * layer.dims, layer.groups)
    calls: dict[str, Callable[[], Any]] = {
        "torch": functools.partial(aten.convolution, x, w, b, *others)
    }
    if layer.dims == 2:
        geometry = (padding, stride, dilation, layer.groups)
        frozen = mkldnn._reorder_convolution_weight(w, *geometry, list(x.shape))
        calls["frozen"] = functools.partial(
            mkldnn._convolution_pointwise, x, frozen, b, *geometry, "none", [], ""
        )
    return calls


def measure(calls: dict[str, Callable[[], Any]], clock: Callable[[], float]) -> dict[str, float]:
    best = dict.fromkeys(calls, float("inf"))
    start = time.perf_counter()
    rounds = 0
    while rounds < 8 or (time.perf_counter() - start < 0.4 and rounds < 300):
        rounds += 1
        for name, call in calls.items():
            before = clock()
            call()
            best[name] = min(best[name], clock() - before)
    return best


def run(library: str, level: str, threads: int, batches: list[int], only: str) -> list[Row]:
    """One row per layer. In a fresh process: oneDNN reads its instruction set when it loads."""
    os.environ["ONEDNN_MAX_CPU_ISA"] = _LEVELS[level][1]
    import torch
    from harness import Slim

    torch.set_grad_enabled(False)
    torch.set_num_threads(threads)
    slim = Slim(library)
    slim.library.aoti_slim_set_cpu_level(_LEVELS[level][0])
    slim.library.aoti_slim_test_set_threads(threads)
    # On a busy machine, a thread's own time says more; it says nothing of several threads.
    clock = time.thread_time if threads == 1 else time.perf_counter

    rows: list[Row] = []
    for layer in [layer for batch in batches for layer in layers(batch) if only in layer.name]:
        x = torch.randn(layer.batch, layer.channels, *layer.size)
        w = torch.randn(layer.out, layer.channels // layer.groups, *[layer.kernel] * layer.dims)
        b = torch.randn(layer.out)
        if layer.dims == 2:
            x = x.contiguous(memory_format=torch.channels_last)
            w = w.contiguous(memory_format=torch.channels_last)
        calls = torch_calls(x, w, b, layer)
        operations = 2 * calls["torch"]().numel() * w[0].numel()
        calls["slim"] = SlimCall(slim, (x, w, b), layer, packed=True)
        calls["unpacked"] = SlimCall(slim, (x, w, b), layer, packed=False)
        best = measure(calls, clock)
        peer = min(best["torch"], best.get("frozen", float("inf")))
        row: Row = {
            "layer": layer.name,
            "level": level,
            "threads": threads,
            "gflops": operations / best["slim"] / 1e9,
            "ratio": best["slim"] / peer,
            "unpacked_ratio": best["unpacked"] / peer,
            "microseconds": {name: value * 1e6 for name, value in best.items()},
        }
        rows.append(row)
        times = "".join(f" {name} {value * 1e6:8.0f}" for name, value in best.items())
        print(
            f"{layer.name:22} {level} t{threads} {row['gflops']:5.0f} GFLOP/s |{times} us | "
            f"slim/best {row['ratio']:5.2f} unpacked/best {row['unpacked_ratio']:5.2f}",
            flush=True,
        )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--library", required=True)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--levels", nargs="+", default=["v4", "v3"], choices=sorted(_LEVELS))
    parser.add_argument("--batches", type=int, nargs="+", default=[1, 8])
    parser.add_argument("--only", default="", help="layers whose name contains this")
    parser.add_argument("--json")
    given = parser.parse_args()
    rows: list[Row] = []
    with multiprocessing.get_context("spawn").Pool(1, maxtasksperchild=1) as pool:
        for level in given.levels:
            for threads in given.threads:
                arguments = (given.library, level, threads, given.batches, given.only)
                rows += pool.apply(run, arguments)
    if given.json:
        with open(given.json, "w", encoding="utf-8") as file:
            json.dump(rows, file, indent=1)


if __name__ == "__main__":
    main()
