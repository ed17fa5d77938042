"""The same bytes however Bazel runs the actions: in a worker, a sandbox, neither, on one CPU."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.differences import first_difference
from tests.integration.nested_bazel import NestedBazel

# The driver's steps run in each build; only C++ may come from a cache.
RUN_AGAIN = "--modify_execution_info=^(Torch|Aoti).*=+no-cache"
ONE_CPU = ["taskset", "--cpu-list", str(min(os.sched_getaffinity(0)))]

# Without a worker, each step is a Python of its own with its own random seed for hashes.
WAYS: dict[str, tuple[list[str], list[str]]] = {
    "sandboxed": ([], ["--spawn_strategy=sandboxed"]),
    "local": ([], ["--spawn_strategy=local"]),
    "sandboxed_worker": ([], ["--worker_sandboxing"]),
    "on_one_cpu": (ONE_CPU, ["--spawn_strategy=sandboxed"]),
}


def artifacts(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and ".runfiles" not in path.as_posix()
    }


def build(bazel: NestedBazel, *options: str) -> dict[str, bytes]:
    """Makes the model's files, which must not be there yet; the static library among them."""
    groups = os.environ["OUTPUT_GROUPS"].replace(",", ",+")
    flags = [f"--output_groups=+{groups}", "--nostart_end_lib", RUN_AGAIN, *options]
    bazel.run("build", "//models:scorer", *flags)
    return artifacts(outputs(bazel))


def outputs(bazel: NestedBazel) -> Path:
    return Path(bazel.output("info", "bazel-bin")) / "models"


def remove(folder: Path) -> None:
    """Bazel leaves folders that nobody may write to."""
    for path in [folder, *folder.rglob("*")]:
        if path.is_dir() and not path.is_symlink():
            path.chmod(0o755)
    shutil.rmtree(folder)


def differences(found: dict[str, bytes], expected: dict[str, bytes]) -> list[str]:
    known = {"scorer.pt2", "libscorer.a", "libscorer.so", "scorer.kernels.cpp/kernels_0.cpp"}
    assert known <= found.keys()
    assert found.keys() == expected.keys()
    return [
        f"{name}: {first_difference(data, expected[name])}"
        for name, data in found.items()
        if data != expected[name]
    ]


@pytest.fixture(scope="module")
def by_worker() -> Iterator[list[dict[str, bytes]]]:
    """What a new worker makes, and what the same worker makes again."""
    bazel = NestedBazel("smoke")
    try:
        bazel.run("clean")
        first = build(bazel)
        remove(outputs(bazel))
        yield [first, build(bazel)]
    finally:
        bazel.shutdown()


def test_a_warm_worker(by_worker: list[dict[str, bytes]]) -> None:
    first, again = by_worker
    assert differences(again, first) == []


@pytest.mark.parametrize("way", WAYS)
def test_same_bytes(way: str, by_worker: list[dict[str, bytes]]) -> None:
    prefix, options = WAYS[way]
    bazel = NestedBazel("smoke", prefix=prefix)
    try:
        bazel.run("clean")
        found = build(bazel, *options)
    finally:
        bazel.shutdown()
    assert differences(found, by_worker[0]) == []
