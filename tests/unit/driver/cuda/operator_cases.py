"""Small modules of one operator each, for the table of operators in docs/cuda_operators.md."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from aoti_driver.base.errors import DriverError
from torch import Tensor, nn

from tests.unit.driver.inductor import harness

DTYPES = {
    "float32": torch.float32,
    "bfloat16": torch.bfloat16,
    "float16": torch.float16,
    "float64": torch.float64,
    "int64": torch.int64,
    "int32": torch.int32,
}
_ROWS, _COLUMNS = 4, 6
_attend = nn.functional.scaled_dot_product_attention


def _places(x: Tensor) -> Tensor:
    """Indices of columns, of x's shape."""
    return torch.arange(_COLUMNS, device=x.device).flip(0).expand_as(x)


def _rows(x: Tensor) -> Tensor:
    return torch.arange(_ROWS, device=x.device)


# operator -> a function of x, [4, 6]
CASES: dict[str, Callable[[Tensor], Any]] = {
    "argsort": lambda x: x.argsort(-1),
    "bincount": lambda x: torch.bincount(x.flatten().clamp(0, 5), minlength=6),
    "cummax": lambda x: torch.cummax(x, -1),
    "cumprod": lambda x: torch.cumprod(x, -1),
    "cumsum": lambda x: torch.cumsum(x, -1),
    "dropout (in training)": lambda x: nn.functional.dropout(x, 0.5, True),
    "embedding": lambda x: nn.functional.embedding(_rows(x), x),
    "embedding_bag": lambda x: nn.functional.embedding_bag(_rows(x)[None], x),
    "gather": lambda x: torch.gather(x, 1, _places(x)),
    "histc": lambda x: torch.histc(x, 4, 0, 1),
    "index_add": lambda x: x.index_add(0, _rows(x), x),
    "index_copy": lambda x: x.index_copy(0, _rows(x), x * 2),
    "index_put": lambda x: x.index_put((_rows(x),), x * 2),
    "index_put(accumulate=True)": lambda x: x.index_put((_rows(x),), x, accumulate=True),
    "index_reduce": lambda x: x.index_reduce(0, _rows(x), x, "amax"),
    "index_select": lambda x: x.index_select(0, _rows(x)),
    "kthvalue": lambda x: torch.kthvalue(x, 2),
    "logcumsumexp": lambda x: torch.logcumsumexp(x, -1),
    "masked_fill": lambda x: x.masked_fill(x > 1, 0),
    "masked_scatter": lambda x: x.masked_scatter(x > 1, x),
    "median": lambda x: torch.median(x, -1),
    "mode": lambda x: torch.mode(x, -1),
    "multinomial": lambda x: torch.multinomial(x, 1),
    "nonzero": lambda x: torch.nonzero(x),
    "rand_like": lambda x: torch.rand_like(x),
    "randint_like": lambda x: torch.randint_like(x, 9),
    "randn_like": lambda x: torch.randn_like(x),
    "randperm": lambda x: x[torch.randperm(_ROWS)],
    "scaled_dot_product_attention": lambda x: _attend(x, x, x),
    "scaled_dot_product_attention(attn_mask)": lambda x: _attend(x, x, x, x[:, :_ROWS]),
    "scaled_dot_product_attention(is_causal=True)": lambda x: _attend(x, x, x, is_causal=True),
    "scatter": lambda x: x.scatter(1, _places(x), x * 2),
    "scatter_add": lambda x: x.scatter_add(1, _places(x), x),
    "scatter_reduce(amax)": lambda x: x.scatter_reduce(1, _places(x), x, "amax"),
    "searchsorted": lambda x: torch.searchsorted(x, x),
    "sort": lambda x: x.sort(-1, descending=True),
    "topk": lambda x: x.topk(2),
    "unique": lambda x: torch.unique(x),
}


class _Module(nn.Module):
    def __init__(self, function: Callable[[Tensor], Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Tensor) -> Any:
        return self.function(x)


def outcome(operator: str, dtype: str, folder: Path) -> str:
    """What is generated for sm_80: "kernels", "-" if PyTorch has no such operator of the dtype on
    the CPU, or the operators that have no kernel.
    """
    x = torch.ones(_ROWS, _COLUMNS, dtype=DTYPES[dtype])
    module = _Module(CASES[operator])
    try:
        module(x)
    except (RuntimeError, NotImplementedError):
        return "-"
    shutil.rmtree(folder, ignore_errors=True)
    harness.freeze(folder, module, (x,))
    try:
        manifest = harness.generate(folder, "pkg_m", cuda_archs=("sm_80",))
    except DriverError as error:
        refused = re.findall(r"\baten(?:::|\.)(\w+)", str(error))
        if not refused:
            raise
        return ", ".join(sorted({f"aten.{name}" for name in refused}))
    # Those without an operator only handle memory.
    called = {name for shim in manifest.codegen.shims for name in shim.operators}
    return ", ".join(sorted(called)) or "kernels"
