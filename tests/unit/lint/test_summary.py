"""The count at the end of a CI run: a test that did not pass counts as failed."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

SUMMARY = Path(os.environ.get("CI_SUMMARY", ".ci/summary.py")).absolute()


@pytest.fixture(scope="module")
def summary() -> ModuleType:
    spec = importlib.util.spec_from_file_location("summary", SUMMARY)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules["summary"] = module
    spec.loader.exec_module(module)
    return module


Event = dict[str, Any]
FINISHED: Event = {"id": {"buildFinished": {}}, "finished": {}}


def configured(label: str, size: str = "SMALL") -> Event:
    return {"id": {"targetConfigured": {"label": label}}, "configured": {"testSize": size}}


def completed(label: str, success: bool = True) -> Event:
    return {
        "id": {"targetCompleted": {"label": label}},
        "completed": {"success": True} if success else {},
    }


def outcome(label: str, status: str) -> Event:
    return {
        "id": {"testSummary": {"label": label}},
        "testSummary": {"overallStatus": status},
    }


def aborted(kind: str, label: str, reason: str) -> Event:
    return {"id": {kind: {"label": label}}, "aborted": {"reason": reason}}


def test_passed(summary: ModuleType) -> None:
    events = [
        configured("//:a"),
        completed("//:a"),
        outcome("//:a", "PASSED"),
        configured("//:b"),
        outcome("//:b", "FLAKY"),
        FINISHED,
    ]
    count = summary.count_run(events, 0)
    assert (count.passed, count.failures) == (2, [])


@pytest.mark.parametrize("status", ["FAILED", "TIMEOUT", "NO_STATUS", "INCOMPLETE"])
def test_not_passed(summary: ModuleType, status: str) -> None:
    events = [configured("//:a"), outcome("//:a", status), FINISHED]
    assert summary.count_run(events, 3).failures == [f"//:a: {status}"]


def test_that_cannot_be_built_counts_once(summary: ModuleType) -> None:
    events = [
        configured("//:good"),
        outcome("//:good", "PASSED"),
        configured("//:a"),
        completed("//:a", success=False),
        FINISHED,
    ]
    count = summary.count_run(events, 1)
    assert (count.passed, count.failures) == (1, ["//:a: FAILED_TO_BUILD"])


def test_that_was_never_run(summary: ModuleType) -> None:
    events = [configured("//:a"), completed("//:a"), FINISHED]
    assert summary.count_run(events, 0).failures == ["//:a: NO_STATUS"]


def test_library_that_cannot_be_built(summary: ModuleType) -> None:
    events = [outcome("//:a", "PASSED"), completed("//:lib", success=False), FINISHED]
    assert summary.count_run(events, 1).failures == ["//:lib: FAILED_TO_BUILD"]


def test_target_that_cannot_be_analysed(summary: ModuleType) -> None:
    events = [
        outcome("//:a", "PASSED"),
        aborted("targetConfigured", "//:b", "ANALYSIS_FAILURE"),
        FINISHED,
    ]
    assert summary.count_run(events, 1).failures == ["//:b: ANALYSIS_FAILURE"]


def test_incompatible_test_is_skipped(summary: ModuleType) -> None:
    events = [
        outcome("//:a", "PASSED"),
        configured("//:b"),
        aborted("targetCompleted", "//:b", "SKIPPED"),
        FINISHED,
    ]
    count = summary.count_run(events, 0)
    assert (count.passed, count.failures, count.skipped) == (1, [], ["//:b"])


def test_no_tests(summary: ModuleType) -> None:
    assert summary.count_run([FINISHED], 0).failures == ["there are no tests"]


def test_bazel_failed_without_saying_where(summary: ModuleType) -> None:
    events = [outcome("//:a", "PASSED"), FINISHED]
    assert summary.count_run(events, 37).failures == ["Bazel's exit status is 37"]


def test_bazel_was_killed(summary: ModuleType) -> None:
    assert summary.count_run([outcome("//:a", "PASSED")], 137).failures == ["Bazel did not finish"]


def _run(folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(SUMMARY), str(folder)], capture_output=True, text=True, check=False
    )


def test_last_line_adds_runs_up(tmp_path: Path) -> None:
    good = [outcome("//:a", "PASSED"), FINISHED]
    bad = [outcome("//:a", "PASSED"), outcome("//:b", "FAILED"), FINISHED]
    for number, (events, status) in enumerate([(good, 0), (bad, 3)], 1):
        text = "\n".join(map(json.dumps, events))
        (tmp_path / f"{number}.json").write_text(text)
        (tmp_path / f"{number}.status").write_text(f"{status}\n")
    run = _run(tmp_path)
    assert run.stdout == "failed: //:b: FAILED\n2 passed, 1 failed\n"
    assert run.returncode == 1
    (tmp_path / "2.status").unlink()
    run = _run(tmp_path)
    assert (run.stdout, run.returncode) == ("1 passed, 0 failed\n", 0)


def test_nothing_run(tmp_path: Path) -> None:
    run = _run(tmp_path)
    assert run.stdout.splitlines()[-1] == "0 passed, 1 failed"
    assert run.returncode == 1


def test_cut_off_event_file(tmp_path: Path) -> None:
    text = json.dumps(outcome("//:a", "PASSED")) + '\n{"id": {"testSumm'
    (tmp_path / "1.json").write_text(text)
    (tmp_path / "1.status").write_text("137\n")
    assert _run(tmp_path).stdout.splitlines()[-1] == "1 passed, 1 failed"
