"""The same bytes however Bazel runs the actions: in a worker, a sandbox, neither, on one CPU."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.differences import first_difference
from tests.integration.nested_bazel import NestedBazel

GROUPS = "--output_groups=+cpp,+export,+manifest,+package,+python,+report,+weights"
# The driver's steps run in each build; only C++ may come from a cache.
RUN_AGAIN = "--modify_execution_info=^(Torch|Aoti).*=+no-cache"
ONE_CPU = ["taskset", "--cpu-list", str(min(os.sched_getaffinity(0)))]

WAYS: dict[str, tuple[list[str], list[str]]] = {
    "sandboxed": ([], ["--spawn_strategy=sandboxed"]),
    "local": ([], ["--spawn_strategy=local"]),
    "sandboxed_worker": ([], ["--worker_sandboxing"]),
    "on_one_cpu": (ONE_CPU, ["--spawn_strategy=sandboxed"]),
    "with_another_hash_seed": ([], ["--spawn_strategy=local", "--action_env=PYTHONHASHSEED=7"]),
}


def artifacts(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and ".runfiles" not in path.as_posix()
    }


def build(prefix: list[str], options: list[str]) -> dict[str, bytes]:
    bazel = NestedBazel("smoke", prefix=prefix)
    try:
        bazel.run("clean")
        bazel.run("build", "//models:scorer", GROUPS, RUN_AGAIN, *options)
        return artifacts(Path(bazel.output("info", "bazel-bin")) / "models")
    finally:
        bazel.shutdown()


@pytest.fixture(scope="module")
def by_worker() -> Iterator[dict[str, bytes]]:
    yield build([], [])


@pytest.mark.parametrize("way", WAYS)
def test_same_bytes(way: str, by_worker: dict[str, bytes]) -> None:
    prefix, options = WAYS[way]
    found = build(prefix, options)
    assert {"scorer.pt2", "libscorer.so", "scorer.kernels.cpp", "scorer.h"} <= found.keys()
    assert found.keys() == by_worker.keys()
    differences = [
        f"{name}: {first_difference(data, by_worker[name])}"
        for name, data in found.items()
        if data != by_worker[name]
    ]
    assert differences == []
