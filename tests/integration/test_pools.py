"""Where steps run, as Bazel reports it: the properties of their exec group, and a CPU that can."""

from __future__ import annotations

import json
import platform
from collections.abc import Iterator
from typing import Any

import pytest

from tests.integration.nested_bazel import NestedBazel, workspace

# aoti_model(exec_properties = ...) of //tests/analysis:pooled, with toolchains that need no torch.
TARGETS = "//tests/analysis:pooled.program + //tests/analysis:pooled + //tests/analysis:pooled_test"
TOOLCHAINS = "//tests/analysis:fake_torch,//tests/analysis:fake_torch_runtime"

POOLS = {
    "TorchExport": "large",
    "AotiCodegen": "standard",
    "AotiPackage": "weights",
    "AotiPackWeights": "weights",
    "TorchPackage": "weights",
    "AotiBindings": None,
    "AotiProvenance": None,
    "CppCompile": None,
    "CppLink": None,
    "TestRunner": "tests",
}


# The first of the exec platforms that suits an action runs it.
OTHER_CPU = "//toolchain/platforms:linux_aarch64"


@pytest.fixture(scope="module")
def bazel() -> Iterator[NestedBazel]:
    nested = NestedBazel("pools", module=workspace())
    yield nested
    nested.close()


def actions(bazel: NestedBazel, query: str, *options: str) -> list[dict[str, Any]]:
    answer = bazel.output("aquery", "--lockfile_mode=off", "--output=jsonproto", *options, query)
    found: list[dict[str, Any]] = json.loads(answer)["actions"]
    return found


@pytest.fixture(scope="module")
def pools(bazel: NestedBazel) -> dict[str, set[str | None]]:
    query = f"mnemonic('{'|'.join(POOLS)}', {TARGETS})"
    found: dict[str, set[str | None]] = {}
    for action in actions(bazel, query, f"--extra_toolchains={TOOLCHAINS}"):
        properties = {pair["key"]: pair.get("value") for pair in action.get("executionInfo", [])}
        assert properties.get("Arch") == "any", action["mnemonic"]
        found.setdefault(action["mnemonic"], set()).add(properties.get("Pool"))
    return found


@pytest.mark.parametrize("mnemonic", POOLS)
def test_pool(pools: dict[str, set[str | None]], mnemonic: str) -> None:
    assert pools[mnemonic] == {POOLS[mnemonic]}


@pytest.mark.skipif(platform.machine() == "aarch64", reason="this machine has the other CPU")
def test_the_interpreter_runs_where_it_can(bazel: NestedBazel) -> None:
    """Even if a platform for another CPU comes first."""
    targets = "//models:glass_aoti.program + @torch_site//:site-packages + @torch_site//:libraries"
    found = actions(
        bazel,
        f"mnemonic('UnpackWheels|TorchExport', deps({targets}))",
        f"--extra_execution_platforms={OTHER_CPU}",
    )
    assert {action["mnemonic"] for action in found} == {"UnpackWheels", "TorchExport"}
    platforms = {action["executionPlatform"] for action in found}
    assert not [name for name in platforms if name.endswith(OTHER_CPU)], platforms
