"""What was measured, and the reports of it."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from typing import Any

from benchmarks.harness.stats import Sample

# In the order of the report.
CONTESTANTS = {
    "stock": "`aoti_compile_and_package` in a script, its caches empty",
    "stock warm": "the same, with the caches that it left",
    "started": "rules_aoti, Bazel started anew",
    "cold": "rules_aoti, Bazel is running, but no worker of rules_aoti",
    "warm": "rules_aoti, and a worker that has torch imported",
    "cached": "rules_aoti, everything from a remote cache",
    "all": "as `cold`, and the C++ library on the slim runtime and the Python module besides",
    "compiled": "`torch.compile` in a script up to the first result, after an edit of the model's "
    "source, with the caches that it left before the edit",
    "edited": "rules_aoti and a worker, after the same edit: a Python program with the model",
}
# What a contestant is relative to, where it isn't `stock`.
BASES = {"edited": "compiled"}
# The largest ratio that we are content with, where there is one.
BARS = {"cold": 0.35, "cached": 0.05, "edited": 0.5}
LARGE_BARS = {"cold": 0.25, "cached": 0.05, "edited": 0.5}
TOGETHER_BARS = {"cold": 0.25, "cached": 0.05}


@dataclasses.dataclass
class Case:
    """A model, or several that are built by one command.

    seconds: by contestant, one number for each round. For several models, stock's is the sum: a
    script for each.
    """

    title: str
    models: int
    bars: dict[str, float]
    seconds: dict[str, list[float]] = dataclasses.field(default_factory=dict)

    def sample(self, contestant: str) -> Sample | None:
        values = self.seconds.get(contestant)
        return Sample.of(values) if values else None

    def ratio(self, contestant: str) -> float | None:
        base, own = self.sample(base_of(contestant)), self.sample(contestant)
        return own.median / base.median if base and own else None

    def missed(self) -> dict[str, tuple[float, float]]:
        """Contestants whose ratio is above the bar: ratio and bar."""
        found = {}
        for contestant, bar in self.bars.items():
            ratio = self.ratio(contestant)
            if ratio is not None and ratio > bar:
                found[contestant] = (ratio, bar)
        return found


@dataclasses.dataclass
class Results:
    """All of a run.

    torch_unpacked: whether the client that builds from the cache has unpacked torch.
    """

    machine: dict[str, Any]
    cases: list[Case]
    torch_unpacked: bool | None = None

    def to_json(self) -> str:
        return json.dumps(dataclasses.asdict(self), indent=1)

    @classmethod
    def from_json(cls, text: str) -> Results:
        fields = json.loads(text)
        fields["cases"] = [Case(**case) for case in fields["cases"]]
        return cls(**fields)


def base_of(contestant: str) -> str:
    return BASES.get(contestant, "stock")


def rows(results: Results) -> list[list[str]]:
    """Titles of the columns, then a row for each case: seconds, and relative to the base."""
    table = [["", *CONTESTANTS]]
    for case in results.cases:
        row = [case.title]
        for contestant in CONTESTANTS:
            sample, ratio = case.sample(contestant), case.ratio(contestant)
            if sample is None:
                row.append("-")
            elif contestant == "stock" or ratio is None:
                row.append(f"{sample.median:.1f} s")
            else:
                row.append(f"{sample.median:.1f} s ({ratio:.2f})")
        table.append(row)
    return table


def targets(results: Results) -> list[str]:
    """The ratios that miss the project's own targets: for the terminal, never for a page."""
    lines = []
    for case in results.cases:
        for contestant, (ratio, bar) in case.missed().items():
            lines.append(
                f"{case.title}, {contestant}: {ratio:.2f} of {base_of(contestant)}, "
                f"the target is {bar:.2f}."
            )
    measured = any(case.ratio(name) is not None for case in results.cases for name in case.bars)
    if measured and not lines:
        lines.append("Each target is reached.")
    return lines


def remarks(results: Results) -> list[str]:
    """What the table does not say."""
    if results.torch_unpacked is None:
        return []
    word = "had" if results.torch_unpacked else "had not"
    return [f"The client that took everything from the cache {word} unpacked torch."]


def markdown(results: Results, machine: str) -> str:
    """The page docs/build_benchmarks.md."""
    head, *body = rows(results)
    return "\n".join(
        [
            "# Build times",
            "",
            "Written by `./bazelw run //benchmarks:build -- --markdown docs/build_benchmarks.md`; "
            "how it measures is described in [benchmarks/README.md](../benchmarks/README.md). From "
            "the model's source to the `.pt2` package with its `.so`: "
            f"{_rounds(results)}, and in parentheses relative to stock; `edited` is relative to "
            "`compiled`.",
            "",
            machine,
            "",
            *_table(head, body),
            "",
            *(f"- {name}: {text}." for name, text in CONTESTANTS.items()),
            "",
            *remarks(results),
            "",
        ]
    )


def _rounds(results: Results) -> str:
    counts = sorted({len(seconds) for case in results.cases for seconds in case.seconds.values()})
    if counts == [1]:
        return "one build each"
    return f"medians of {' or '.join(map(str, counts))} builds"


def _table(head: Sequence[str], body: Sequence[Sequence[str]]) -> list[str]:
    lines = ["| " + " | ".join(head) + " |", "|---|" + "---:|" * (len(head) - 1)]
    return lines + ["| " + " | ".join(row) + " |" for row in body]
