"""Writes docs/cuda_operators.md: ``python -m tests.unit.driver.cuda.operator_page``."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Mapping
from pathlib import Path

from tests.unit.driver.cuda import operator_cases

PAGE = "docs/cuda_operators.md"
_HEAD = (
    "# Operators on GPUs\n\n"
    "What became of small models of one operator each when they were compiled for `sm_80`: "
    "{kernels} of {all} pairs of an operator and a dtype became kernels. In the other "
    "{functions}, the build refuses an operator, which the last column names. Where it names "
    'several for one function, the others compute the arguments. "no" says so of a dtype, and '
    '"-" that PyTorch has no such operator for the dtype on the CPU, where models are '
    "exported. [Models on NVIDIA GPUs](cuda.md#what-is-refused) says what can be done. The "
    "table says that code was generated and assembled; its results are compared with eager "
    "PyTorch only for the models of `//tests/cuda:models_test`.\n\n"
    "The models are in `tests/unit/driver/cuda/operator_cases.py`, and `python -m "
    "tests.unit.driver.cuda.operator_page` writes this page again. "
    "`//tests/unit/driver:cuda_codegen_test` repeats some of the rows.\n"
)


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
        for operator in operator_cases.CASES:
            for dtype in operator_cases.DTYPES:
                outcome = operator_cases.outcome(operator, dtype, Path(folder, "program"))
                outcomes[operator, dtype] = outcome
                print(operator, dtype, outcome, flush=True)
    Path(PAGE).write_text(page(outcomes), encoding="utf-8")


if __name__ == "__main__":
    main()
