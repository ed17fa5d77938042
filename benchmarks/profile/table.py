"""The table of //benchmarks:decode_profile."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping


@dataclasses.dataclass(frozen=True, order=True)
class Case:
    precision: str
    threads: int
    context: int

    def __str__(self) -> str:
        return f"{self.precision}, {self.threads} thread(s), {self.context} tokens"


@dataclasses.dataclass(frozen=True)
class Profile:
    """Of a decoded token."""

    ms: float
    bytes: int  # of the weights, keys and values that it reads
    kinds: dict[str, float]  # kind of step -> share of all threads' time


def render(cases: Mapping[Case, Profile], rates: Mapping[int, float]) -> str:
    """One row for each case; rates: bytes per second that so many threads can read."""
    kinds = list(dict.fromkeys(kind for profile in cases.values() for kind in profile.kinds))
    rows = [["weights", "threads", "tokens", "ms", "of memory", *kinds]]
    for case, profile in cases.items():
        rate = profile.bytes / (profile.ms / 1e3)
        shares = (profile.kinds.get(kind, 0.0) for kind in kinds)
        rows.append(
            [
                case.precision,
                str(case.threads),
                str(case.context),
                f"{profile.ms:.2f}",
                f"{rate / rates[case.threads]:.0%}",
                *(f"{share * profile.ms:.2f} {share:4.0%}" for share in shares),
            ]
        )
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = ["  ".join(cell.rjust(w) for cell, w in zip(row, widths, strict=True)) for row in rows]
    memory = ", ".join(f"{rate / 1e9:.1f} GB/s with {n}" for n, rate in sorted(rates.items()))
    return "\n".join([*lines, f"memory is read at (threads): {memory}"])
