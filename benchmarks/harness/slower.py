"""Where slim is slower than its fastest peer, and what is known of the reasons."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.harness.results import OURS, Results, fastest_peer, medians

NOISE = 1.02  # ratios up to here are no difference
UNKNOWN = "not known yet"
SLOWER_TITLE = "Where slim is not the fastest"
SLOWER_NOTE = (
    f"Cases in which it takes more than {NOISE:.2f} of the fastest peer's time, the largest ratio "
    "first."
)
_FILE = Path(__file__).absolute().parents[1] / "reasons.json"
_FIELDS = {"models", "cases", "threads", "peers", "reason"}


@dataclasses.dataclass(frozen=True)
class Comparison:
    """Slim beside the fastest peer, in one case."""

    model: str
    case: str
    threads: int
    peer: str
    ratio: float  # slim's time to the peer's


@dataclasses.dataclass(frozen=True)
class Reason:
    """Why slim is slower where all of these hold; an empty list holds for everything."""

    models: list[str]
    reason: str
    cases: list[str] = dataclasses.field(default_factory=list)
    threads: list[int] = dataclasses.field(default_factory=list)
    peers: list[str] = dataclasses.field(default_factory=list)

    def holds_for(self, found: Comparison) -> bool:
        return (
            found.model in self.models
            and (not self.cases or found.case in self.cases)
            and (not self.threads or found.threads in self.threads)
            and (not self.peers or found.peer in self.peers)
        )


def known_reasons(text: str | None = None) -> list[Reason]:
    """Those of benchmarks/reasons.json; text: its content."""
    entries: list[dict[str, Any]] = json.loads(text or _FILE.read_text(encoding="utf-8"))
    for entry in entries:
        if not {"models", "reason"} <= entry.keys() <= _FIELDS:
            raise ValueError(
                f"benchmarks/reasons.json: {entry} must have models and reason, and may have "
                "cases, threads and peers"
            )
    return [Reason(**entry) for entry in entries]


def comparisons(results: Results) -> Iterator[Comparison]:
    """All cases in which slim and a peer have a time."""
    for model, case, threads, entries in results.latency_rows():
        values = medians(entries)
        best = fastest_peer(values)
        own = [values[name] for name in OURS if name in values]
        if best and own:
            yield Comparison(model, case, threads, best[0], min(own) / best[1])


def explained(results: Results, reasons: Sequence[Reason]) -> list[tuple[Comparison, str]]:
    """The cases in which slim is slower, the worst first, each with the reason."""
    slower = sorted((c for c in comparisons(results) if c.ratio > NOISE), key=lambda c: -c.ratio)
    return [
        (found, next((r.reason for r in reasons if r.holds_for(found)), UNKNOWN))
        for found in slower
    ]
