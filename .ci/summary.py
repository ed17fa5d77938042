"""Counts the tests of finished Bazel runs from their build events.

The argument is a folder with, for each run, N.json (--build_event_json_file) and N.status (Bazel's
exit status). Whatever was asked for and did not pass counts as failed: a test that could not be
built or timed out, a target that could not be built or analysed, a run without any test.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Event = dict[str, Any]
_PASSED = ("PASSED", "FLAKY")
_MAY_ABORT = ("targetConfigured", "targetCompleted", "configuredLabel", "unconfiguredLabel")


@dataclass
class Count:
    """The outcome of one or more runs."""

    passed: int = 0
    failures: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)


def read_events(file: Path) -> list[Event]:
    """The events of a run; a run that was killed leaves a last line that is cut off."""
    events = []
    for line in file.read_text().splitlines() if file.exists() else []:
        try:
            events.append(json.loads(line))
        except ValueError:
            break
    return events


def count_run(events: Iterable[Event], status: int) -> Count:
    """The outcome of one run."""
    tests: dict[str, str] = {}
    broken: dict[str, str] = {}
    skipped: set[str] = set()
    finished = False
    for event in events:
        kind = next(iter(event["id"]), "")
        identity: Event = event["id"].get(kind, {})
        label = identity.get("label", "")
        if kind == "testSummary" and "testSummary" in event:
            tests[label] = event["testSummary"].get("overallStatus", "NO_STATUS")
        elif kind == "targetConfigured" and event.get("configured", {}).get("testSize"):
            tests.setdefault(label, "NO_STATUS")
        elif kind == "targetCompleted" and "completed" in event:
            if not event["completed"].get("success"):
                broken[label] = "FAILED_TO_BUILD"
        elif kind in _MAY_ABORT:
            reason = event.get("aborted", {}).get("reason")
            if reason == "SKIPPED":
                skipped.add(label)
            elif reason:
                broken.setdefault(label, reason)
        elif kind == "pattern" and "aborted" in event:
            broken.setdefault(" ".join(identity.get("pattern", [])), event["aborted"]["reason"])
        elif kind == "buildFinished":
            finished = True
    count = Count(skipped=sorted(skipped))
    outcomes = {label: state for label, state in tests.items() if label not in skipped}
    for label, reason in broken.items():
        if label not in skipped and outcomes.get(label, "NO_STATUS") == "NO_STATUS":
            outcomes[label] = reason
    for label, state in sorted(outcomes.items()):
        if state in _PASSED:
            count.passed += 1
        else:
            count.failures.append(f"{label}: {state}")
    if not count.failures:
        if not finished:
            count.failures.append("Bazel did not finish")
        elif status:
            count.failures.append(f"Bazel's exit status is {status}")
        elif not count.passed:
            count.failures.append("there are no tests")
    return count


def main() -> None:
    """Prints failures, then the counts; the exit status says whether all is well."""
    total = Count()
    for file in sorted(Path(sys.argv[1]).glob("*.status"), key=lambda path: int(path.stem)):
        run = count_run(read_events(file.with_suffix(".json")), int(file.read_text()))
        total.passed += run.passed
        total.failures += run.failures
        total.skipped += run.skipped
    if not total.passed and not total.failures:
        total.failures.append("nothing was run")
    for label in total.skipped:
        print(f"skipped: {label}")
    for failure in total.failures:
        print(f"failed: {failure}")
    print(f"{total.passed} passed, {len(total.failures)} failed")
    sys.exit(bool(total.failures))


if __name__ == "__main__":
    main()
