"""Writes docs/cuda_operators.md: ``python -m tests.unit.driver.cuda.operator_page``."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from aoti_driver.base.errors import DriverError
from torch import Tensor, nn

from tests.cuda import operator_cases
from tests.unit.driver.inductor import harness

PAGE = "docs/cuda_operators.md"
_HEAD = (
    "# Operators on GPUs\n\n"
    "What became of small models of one operator each when they were compiled for `sm_80`: "
    "{kernels} of {all} pairs of an operator and a dtype became kernels. In the other "
    '{functions}, the build refuses an operator, which the last column names. "no" says so of '
    'a dtype, and "-" that PyTorch has no such operator for the dtype on the CPU, where models '
    "are exported. [Models on NVIDIA GPUs](cuda.md#what-is-refused) says what can be done.\n\n"
    '"yes" says that the kernels ran in the [emulator](cuda.md#testing-without-a-gpu) and '
    "that their results are those of eager PyTorch: exactly for integers, to 1e-5 of the largest "
    "number for float32 and float64, and to two units in its last place for bfloat16 and "
    "float16, which are compared with what PyTorch gives in float64: it rounds between the steps "
    "of an operator, too. Of [random numbers](cuda.md#random-numbers), the dtype and the range are "
    "looked at. `//tests/cuda:operators_test` does this for float32, bfloat16 and int64, and "
    "`//tests/cuda:other_operators_test`, which has to be asked for, for the other dtypes.\n\n"
    "The operators are in `tests/cuda/operator_cases.py`, and `python -m "
    "tests.unit.driver.cuda.operator_page` writes this page again, from what the build says. "
    "`//tests/unit/driver:cuda_codegen_test` repeats some of the rows.\n"
)


class _Module(nn.Module):
    def __init__(self, operator: str) -> None:
        super().__init__()
        cases, random = operator_cases.CASES, operator_cases.RANDOM
        self.function = cases[operator] if operator in cases else random[operator][0]

    def forward(self, x: Tensor) -> Any:
        return self.function(x)


def outcome(operator: str, dtype: str, folder: Path) -> str:
    """What is generated for sm_80: "kernels", "-" if PyTorch has no such operator of the dtype on
    the CPU, or the operators that have no kernel.
    """
    if not operator_cases.there(operator, dtype):
        return "-"
    shutil.rmtree(folder, ignore_errors=True)
    harness.freeze(folder, _Module(operator), (operator_cases.sample(dtype),))
    try:
        manifest = harness.generate(folder, "pkg_m", cuda_archs=("sm_80",))
    except DriverError as error:
        refused = re.findall(r"(?:operator |Exception: )(aten\.[\w.]+)", str(error))
        if not refused:
            raise
        return ", ".join(sorted(set(refused)))
    called = {
        name
        for shim in manifest.codegen.shims
        # It draws the seeds of random numbers; those without an operator only handle memory.
        if shim.name != "aoti_torch_cpu_randint_low_out"
        for name in shim.operators
    }
    return ", ".join(sorted(called)) or "kernels"


def page(outcomes: Mapping[tuple[str, str], str]) -> str:
    """(operator, dtype) -> outcome."""
    there = [o for o in outcomes.values() if o != "-"]
    kernels = there.count("kernels")
    head = _HEAD.format(kernels=kernels, all=len(there), functions=len(there) - kernels)
    dtypes = list(operator_cases.DTYPES)
    lines = [
        "| operator | " + " | ".join(dtypes) + " | refused |",
        "|---" * (len(dtypes) + 2) + "|",
    ]
    for operator in dict.fromkeys(operator for operator, _ in outcomes):
        row = [outcomes[operator, dtype] for dtype in dtypes]
        words = [{"kernels": "yes", "-": "-"}.get(o, "no") for o in row]
        refused = sorted({o for o in row if o not in ("kernels", "-")})
        names = ", ".join(f"`{name}`" for o in refused for name in o.split(", "))
        lines.append(f"| `{operator}` | " + " | ".join(words) + f" | {names} |")
    return head + "\n" + "\n".join(lines) + "\n"


def words(text: str) -> dict[tuple[str, str], str]:
    """(operator, dtype) -> yes, no or -, read from the page."""
    rows = re.findall(r"^\| `(.+?)` \| (.*)$", text, re.MULTILINE)
    dtypes = operator_cases.DTYPES
    return {
        (operator, dtype): word
        for operator, cells in rows
        for dtype, word in zip(dtypes, cells.split(" | "), strict=False)
    }


def main() -> None:
    outcomes = {}
    with tempfile.TemporaryDirectory() as folder:
        for operator in [*operator_cases.CASES, *operator_cases.RANDOM]:
            for dtype in operator_cases.DTYPES:
                found = outcome(operator, dtype, Path(folder, "program"))
                outcomes[operator, dtype] = found
                print(operator, dtype, found, flush=True)
    Path(PAGE).write_text(page(outcomes), encoding="utf-8")


if __name__ == "__main__":
    main()
