"""The same bytes however Bazel runs the actions: in a worker, a sandbox, neither, on one CPU."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.differences import first_difference
from tests.integration.nested_bazel import NestedBazel, remove

GROUPS = f"--output_groups=+{os.environ['OUTPUT_GROUPS'].replace(',', ',+')}"
# The driver's steps run in each build; only C++ may come from a cache.
RUN_AGAIN = "--modify_execution_info=^(Torch|Aoti).*=+no-cache"
# Objects and the static library too, whether or not something else was linked from them.
ALL_FILES = ["--nostart_end_lib", "--remote_download_outputs=all"]
ONE_CPU = ["taskset", "--cpu-list", str(min(os.sched_getaffinity(0)))]

# Without a worker, each step is a Python of its own with its own random seed for hashes.
WAYS = {
    "warm_worker": [],
    "sandboxed_worker": ["--worker_sandboxing"],
    "sandboxed": ["--spawn_strategy=sandboxed"],
    "local": ["--spawn_strategy=local"],
}

Files = dict[str, bytes]


def artifacts(folder: Path) -> Files:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and ".runfiles" not in path.as_posix() and path.suffix != ".d"
    }


def build(bazel: NestedBazel, *options: str) -> Files:
    """Makes all files of the model anew."""
    folder = Path(bazel.output("info", "bazel-bin")) / "models"
    if folder.exists():
        remove(folder)
    bazel.run("build", "//models:scorer", GROUPS, RUN_AGAIN, *ALL_FILES, *options)
    return artifacts(folder)


def compare(found: Files, expected: Files) -> None:
    kernels = "scorer.kernels.cpp/kernels_0.cpp"
    assert {"scorer.pt2", "libscorer.a", "libscorer.so", "scorer.so", kernels} <= found.keys()
    assert found.keys() == expected.keys()
    differences = [
        f"{name}: {first_difference(data, expected[name])}"
        for name, data in found.items()
        if data != expected[name]
    ]
    assert differences == []


@pytest.fixture(scope="module")
def bazel() -> Iterator[NestedBazel]:
    nested = NestedBazel("smoke")
    nested.compile_runtime()
    yield nested
    nested.close()


@pytest.fixture(scope="module")
def by_new_worker(bazel: NestedBazel) -> Files:
    return build(bazel)


def test_its_own_tests(bazel: NestedBazel, by_new_worker: Files) -> None:
    bazel.run("test", "//...")


def test_cxx20_for_the_whole_build(bazel: NestedBazel, by_new_worker: Files) -> None:
    """The flag may be in .bazelrc in place of copts; the headers say so where there is neither."""
    objects = "--output_groups=compilation_outputs"
    flags = ["--cxxopt=-std=c++20", "--host_cxxopt=-std=c++20"]
    bazel.run("build", "//:without_copts", objects, *flags)
    refused = bazel.run("build", "//:without_copts", objects, check=False)
    assert refused.code == 1
    assert "rules_aoti needs C++20" in refused.text


@pytest.mark.parametrize("way", WAYS)
def test_same_bytes(way: str, bazel: NestedBazel, by_new_worker: Files) -> None:
    compare(build(bazel, *WAYS[way]), by_new_worker)


def test_same_bytes_on_one_cpu(bazel: NestedBazel, by_new_worker: Files) -> None:
    bazel.shutdown()
    on_one = NestedBazel("smoke", prefix=ONE_CPU)
    try:
        compare(build(on_one, "--spawn_strategy=sandboxed"), by_new_worker)
    finally:
        on_one.shutdown()
