"""Which calls of attention become kernels, and what they become. Needs Triton."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from aoti_driver.cuda import attention
from aoti_driver.cuda.archs import ARCHS
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention as attend

from tests.unit.driver.inductor import harness


class _Module(nn.Module):
    def __init__(self, function: Callable[..., Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *args: Tensor) -> Tensor:
        return self.function(*args)


def floats(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.randn(shape, dtype=dtype)


Q, K = (2, 4, 5, 16), (2, 4, 7, 16)

KERNELS: dict[str, tuple[Callable[..., Tensor], tuple[Tensor, ...]]] = {
    "plain": (lambda q, k: attend(q, k, k), (floats(*Q), floats(*K))),
    "bfloat16": (
        lambda q, k: attend(q, k, k, is_causal=True),
        (floats(*Q, dtype=torch.bfloat16), floats(*K, dtype=torch.bfloat16)),
    ),
    "without heads": (lambda q, k: attend(q, k, k), (floats(2, 5, 16), floats(2, 7, 16))),
    "one matrix": (lambda q, k: attend(q, k, k), (floats(5, 16), floats(7, 16))),
    "grouped": (lambda q, k: attend(q, k, k, enable_gqa=True), (floats(*Q), floats(2, 2, 7, 16))),
    "grouped without batches": (
        lambda q, k: attend(q, k, k, enable_gqa=True),
        (floats(4, 5, 16), floats(2, 7, 16)),
    ),
    "one head of keys": (lambda q, k: attend(q, k, k), (floats(*Q), floats(2, 1, 7, 16))),
    "one row of keys": (lambda q, k: attend(q, k, k), (floats(*Q), floats(1, 4, 7, 16))),
    "odd widths": (
        lambda q, k, v: attend(q, k, v),
        (floats(2, 4, 5, 3), floats(2, 4, 7, 3), floats(2, 4, 7, 200)),
    ),
    "a mask of booleans": (
        lambda q, k, m: attend(q, k, k, m > 0),
        (floats(*Q), floats(*K), floats(2, 1, 1, 7)),
    ),
    "a mask of numbers": (
        lambda q, k, m: attend(q, k, k, m, scale=0.1),
        (floats(*Q), floats(*K), floats(5, 7)),
    ),
}

PRODUCTS: dict[str, tuple[Callable[..., Tensor], tuple[Tensor, ...]]] = {
    "float64": (
        lambda q, k: attend(q, k, k),
        (floats(*Q, dtype=torch.float64), floats(*K, dtype=torch.float64)),
    ),
    "five dims": (lambda q, k: attend(q, k, k), (floats(2, *Q), floats(2, *K))),
    "too wide": (lambda q, k: attend(q, k, k), (floats(2, 4, 5, 264), floats(2, 4, 7, 264))),
    "dropout": (lambda q, k: attend(q, k, k, dropout_p=0.5), (floats(*Q), floats(*K))),
    "a query for each row of keys": (
        lambda q, k: attend(q, k, k),
        (floats(1, 4, 5, 16), floats(*K)),
    ),
    "other heads of values": (
        lambda q, k, v: attend(q, k, v, enable_gqa=True),
        (floats(*Q), floats(*K), floats(2, 2, 7, 16)),
    ),
}


def operators(function: Callable[..., Tensor], args: tuple[Tensor, ...]) -> set[str]:
    with torch.no_grad():
        module: Any = torch.export.export(_Module(function), args).module(check_guards=False)
    attention.in_kernels(module, [ARCHS["sm_80"]])
    return {str(node.target) for node in module.graph.nodes if "attention" in str(node.target)}


@pytest.mark.parametrize("case", KERNELS)
def test_it_is_a_kernel(case: str) -> None:
    assert operators(*KERNELS[case]) == {"rules_aoti.attention.default"}


@pytest.mark.parametrize("case", PRODUCTS)
def test_it_stays_as_it_is(case: str) -> None:
    assert operators(*PRODUCTS[case]) == {"aten.scaled_dot_product_attention.default"}


def test_sizes_that_vary() -> None:
    rows = torch.export.Dim("rows", min=1, max=8)
    module = _Module(lambda q, m: attend(q, q, q, m))
    args = (floats(2, 1, 5, 16), floats(2, 1, 1, 5))
    shapes = {"args": ({0: rows}, {0: rows})}
    with torch.no_grad():
        ep = torch.export.export(module, args, dynamic_shapes=shapes)
    graph: Any = ep.module(check_guards=False)
    attention.in_kernels(graph, [ARCHS["sm_80"]])
    assert "rules_aoti.attention.default" in str(graph.graph)


def rows_of(folder: Path) -> list[tuple[int, bool, int]]:
    """(architecture, PTX, shared memory) of each image of each kernel."""
    wrapper = (folder / "wrapper.cpp").read_text(encoding="utf-8")
    rows = re.findall(r"\{(\d+), (true|false), \d+, \d+, (\d+), \d+\},", wrapper)
    return [(int(arch), ptx == "true", int(shared)) for arch, ptx, shared in rows]


def test_every_architecture(tmp_path: Path) -> None:
    """The machine code fits into the shared memory, and nothing is rounded to TF32."""
    names = ["sm_80", "sm_86", "sm_90", "sm_100", "sm_120"]
    query, key = (floats(1, 4, n, 128).half() for n in (64, 2048))
    harness.freeze(tmp_path, _Module(lambda q, k: attend(q, k, k)), (query, key))
    harness.generate(tmp_path, "pkg_m", cuda_archs=names)
    rows = rows_of(tmp_path)
    # The kernel, and the one that merges parts.
    assert [arch for arch, ptx, _ in rows if not ptx] == 2 * [ARCHS[n].capability for n in names]
    for arch, _, shared in rows:
        assert shared <= ARCHS[f"sm_{arch}"].shared_bytes


def test_float32_is_not_rounded(tmp_path: Path) -> None:
    harness.freeze(tmp_path, _Module(lambda q, k: attend(q, k, k)), (floats(*Q), floats(*K)))
    harness.generate(tmp_path, "pkg_m", cuda_archs=["sm_80"])
    assert b"tf32" not in (tmp_path / "images.bin").read_bytes()
    wrapper = (tmp_path / "wrapper.cpp").read_text(encoding="utf-8")
    # There are too few keys to split them.
    assert re.findall(r'\{"(\w+)", kImages', wrapper) == ["flash_attention"]


@pytest.mark.parametrize(
    ("keys", "queries", "kernels"),
    [
        ((2, 256), 5, ["flash_attention"]),
        ((2, 257), 5, ["flash_attention", "merge_attention"]),
        # There are so many queries that their blocks fill the GPU.
        ((2, 4096), 2048, ["flash_attention"]),
    ],
)
def test_nothing_merges_where_keys_are_never_split(
    tmp_path: Path, keys: tuple[int, int], queries: int, kernels: list[str]
) -> None:
    varied = torch.export.Dim("keys", min=keys[0], max=keys[1])
    args = (floats(2, 4, queries, 16), floats(2, 4, 7, 16))
    shapes = {"args": (None, {2: varied})}
    harness.freeze(tmp_path, _Module(lambda q, k: attend(q, k, k)), args, shapes=shapes)
    harness.generate(tmp_path, "pkg_m", cuda_archs=["sm_80"])
    wrapper = (tmp_path / "wrapper.cpp").read_text(encoding="utf-8")
    assert re.findall(r'\{"(\w+)", kImages', wrapper) == kernels
