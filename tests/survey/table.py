"""docs/slim_operators.md and docs/slim_architectures.md: written from the survey's rows, and read
back.
"""

from __future__ import annotations

import dataclasses
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence

_OPERATOR = re.compile(r"aoti_torch_(?:cpu|aten)_|.*::")
# Operators that torch declares by hand, among the functions for tensors.
_BY_HAND = {
    "aoti_torch__mm_plus_mm_out",
    "aoti_torch_index_put_out",
    "aoti_torch_scatter_out",
    "aoti_torch_scatter_reduce_out",
}

_TITLE = "# What models need of the runtime"
_INTRODUCTION = (
    "The operators that programs call because Inductor does not generate them, counted over "
    "[{count} architectures](slim_architectures.md) of transformers, timm, torch.nn, torch's and "
    "torchvision's operators, and torch.export's own examples. They have random weights, and "
    "small configurations with the operators of the real ones. Each was exported (with a dynamic "
    "batch where that is possible) and its C++ generated for {isa}, by the same steps as in a "
    "build; the calls were read from the generated text. `aoti_torch_cpu_*` are functions of "
    "AOTInductor's C interface; `aten::name.overload` and `torchvision::name.overload` are "
    "operators without one, called by name. A convolution that is one operator with what is "
    "around it ([how it works](architecture.md#convolutions-and-what-is-around-them)) counts as "
    "`aoti_torch_cpu_convolution`. The list is `tests/survey/architectures.py`. To write this "
    "page again, install torch, transformers, timm and torchvision together and run `python "
    "tests/survey/survey.py`: it replaces the rows of what it examines (`--only='timm/*'` for "
    "some), and takes a few seconds for each."
)
_DTYPES = (
    "The last column has the dtypes that an operator was called with and gave PyTorch's results "
    "for, on contiguous and on strided tensors; `runtime/slim/dtypes.txt` has them for every "
    'operator, and a test repeats the comparison. With `shim = "auto"` a program that calls an '
    "operator with other dtypes runs on libtorch, and the build says so."
)
_LIMITS = (
    "Some results are not determined by their definition. The eigenvalues of `linalg_eig` and "
    "`linalg_eigvals` have no order, and an eigenvector may be multiplied by any number of "
    "magnitude 1: slim's choice is that of eager PyTorch (LAPACK) for most small matrices, and "
    "another one where rounding errors decide. Sort the values, or compute what does not depend on "
    "it. A copy of a complex tensor into a real one, which drops the imaginary parts, is left to "
    "libtorch, as are `linalg_ldl_solve` and `linalg_lu_solve` with pivots of int64. "
    "`linalg_lstsq` is in no program: torch.export does not know the shapes of its results."
)

_ABSENT = (
    'Slim lacks these on purpose. With `shim = "auto"` a program that calls one runs on libtorch:',
    "",
    "- `aoti_torch_cpu__scaled_mm` and `aoti_torch_cpu__scaled_mm_out`: products of float8 "
    "matrices. No generated code calls them: `_scaled_mm` becomes a product in float32, as in "
    "PyTorch on the CPU, on every runtime. Slim has no operators for tensors of float8; only "
    "kernels that Inductor writes read and write them.",
    "- `_scaled_grouped_mm`: PyTorch has no kernel for the CPU, so that no such model can be "
    "exported or compared.",
    "- `aoti_torch_cpu__dyn_quant_matmul_4bit` for weights that were packed by KleidiAI (on Arm "
    "CPUs, as uint8): the layout belongs to the CPU that packed them. Slim has the layout of "
    "other CPUs (float32), and computes with it on every CPU.",
    "- torchvision's `roi_pool`, `ps_roi_align`, `ps_roi_pool` and quantized operators: libtorch "
    "does not have them either, and a program that calls one is refused.",
)

# More mixtures of dtypes than this aren't listed one by one.
_MANY = 30

_FUNCTIONS = "## Operators"
_PLUMBING = "## Other functions"
_ARCHITECTURES_TITLE = "# Architectures on the slim runtime"
_ARCHITECTURES = (
    "The operators that each architecture of [the survey](slim_operators.md) calls, and whether "
    "the slim runtime has all of them."
)
_ROW = re.compile(r"\| `([^`]+)` \| (\w+) \| (.*?) \| ([^|]*) \|")


@dataclasses.dataclass(frozen=True)
class Row:
    """What one architecture needs; ``failed``: why it has no code."""

    batch: bool = False
    operators: tuple[str, ...] = ()
    failed: str = ""


@dataclasses.dataclass
class Page:
    rows: dict[str, Row]
    plumbing: set[str]

    @staticmethod
    def read(operators: str, architectures: str) -> Page:
        page = Page({}, set())
        _, _, plumbing = operators.partition(_PLUMBING)
        page.plumbing = set(re.findall(r"`(\w+)`", plumbing))
        for name, batch, what, _ in _ROW.findall(architectures):
            if what.startswith("no code: "):
                page.rows[name] = Row(failed=what.removeprefix("no code: "))
            else:
                page.rows[name] = Row(batch == "dynamic", tuple(re.findall(r"`([^`]+)`", what)))
        return page

    def add(self, name: str, batch: bool, functions: Collection[str]) -> None:
        operators = {function for function in functions if is_operator(function)}
        self.rows[name] = Row(batch, tuple(sorted(operators)))
        self.plumbing |= set(functions) - operators

    def add_failure(self, name: str, reason: str) -> None:
        plain = reason.replace("|", "/").replace("`", "'")
        self.rows[name] = Row(failed=" ".join(plain.split()))

    def text(
        self,
        order: Iterable[str],
        provided: set[str],
        dtypes: Mapping[str, Sequence[str]],
        isa: str,
    ) -> str:
        """order: the architectures in the page; provided: what slim has, and for which dtypes."""
        rows = {name: self.rows[name] for name in order if name in self.rows}
        return "\n".join(
            [
                _TITLE,
                "",
                _INTRODUCTION.format(count=len(rows), isa=isa),
                "",
                _FUNCTIONS,
                "",
                _DTYPES,
                "",
                *_functions(rows, provided, dtypes),
                "",
                _LIMITS,
                "",
                *_ABSENT,
                "",
                _PLUMBING,
                "",
                "What the generated code calls beside operators, to make tensors and to ask for "
                "their properties:",
                "",
                ", ".join(f"`{name}`" for name in sorted(self.plumbing)),
                "",
            ]
        )

    def architectures(self, order: Iterable[str], provided: set[str]) -> str:
        """The text of the page that has the rows."""
        rows = (
            _architecture(name, self.rows[name], provided) for name in order if name in self.rows
        )
        return "\n".join(
            [
                _ARCHITECTURES_TITLE,
                "",
                _ARCHITECTURES,
                "",
                "| architecture | batch | operators | slim |",
                "|---|---|---|---|",
                *rows,
                "",
            ]
        )


def is_operator(function: str) -> bool:
    return bool(_OPERATOR.match(function)) or function in _BY_HAND


def symbol(function: str) -> str:
    """The name in slim's list of functions; operators that are called by name have a symbol too."""
    if "::" not in function:
        return function
    name, _, overload = function.partition(".")
    name = name.replace("::", "_")
    return f"aoti_slim_op_{name}" + (f"_{overload}" if overload != "default" else "")


def _functions(
    rows: Mapping[str, Row], provided: set[str], dtypes: Mapping[str, Sequence[str]]
) -> list[str]:
    users: dict[str, list[str]] = {}
    for name, row in rows.items():
        for operator in row.operators:
            users.setdefault(operator, []).append(name)
    lines = [
        "| operator | architectures | of which | slim | for tensors of |",
        "|---|---|---|---|---|",
    ]
    for operator, names in sorted(users.items(), key=lambda item: (-len(item[1]), item[0])):
        has = "yes" if symbol(operator) in provided else "no"
        taken = _dtypes(dtypes.get(symbol(operator), ()))
        lines.append(f"| `{operator}` | {len(names)} | {_which(names)} | {has} | {taken} |")
    return lines


def _dtypes(calls: Sequence[str]) -> str:
    """Those of the arguments; of the results where there are no arguments.

    >>> _dtypes(["float32->float32", "float64->float64", "int8,uint8->int32", "->bool"])
    'float32, float64, int8 with uint8, bool'
    """
    sides = (call.partition("->") for call in calls)
    kinds = dict.fromkeys(arguments or results for arguments, _, results in sides)
    if len(kinds) > _MANY:
        every = sorted({dtype for kind in kinds for dtype in kind.split(",")})
        return f"{', '.join(every)}; {len(kinds)} mixtures of them"
    return ", ".join(kind.replace(",", " with ") for kind in kinds)


def _which(names: list[str]) -> str:
    """All of few; of many, how many of each package."""
    if len(names) <= 6:
        return ", ".join(names)
    packages = Counter(name.partition("/")[0] for name in names)
    return ", ".join(f"{count} of {package}" for package, count in packages.items())


def _architecture(name: str, row: Row, provided: set[str]) -> str:
    if row.failed:
        return f"| `{name}` | none | no code: {row.failed} | none |"
    missing = [operator for operator in row.operators if symbol(operator) not in provided]
    operators = ", ".join(f"`{operator}`" for operator in row.operators) or "none"
    covered = f"{len(missing)} missing" if missing else "covered"
    return f"| `{name}` | {'dynamic' if row.batch else 'static'} | {operators} | {covered} |"
