"""Steps get the execution properties of their exec group, as Bazel itself reports them."""

from __future__ import annotations

import json

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


@pytest.fixture(scope="module")
def pools() -> dict[str, set[str | None]]:
    bazel = NestedBazel("pools", module=workspace())
    try:
        answer = bazel.output(
            "aquery",
            "--lockfile_mode=off",
            "--output=jsonproto",
            f"--extra_toolchains={TOOLCHAINS}",
            f"mnemonic('{'|'.join(POOLS)}', {TARGETS})",
        )
    finally:
        bazel.shutdown()
    found: dict[str, set[str | None]] = {}
    for action in json.loads(answer)["actions"]:
        properties = {pair["key"]: pair.get("value") for pair in action.get("executionInfo", [])}
        assert properties.get("Arch") == "any", action["mnemonic"]
        found.setdefault(action["mnemonic"], set()).add(properties.get("Pool"))
    return found


@pytest.mark.parametrize("mnemonic", POOLS)
def test_pool(pools: dict[str, set[str | None]], mnemonic: str) -> None:
    assert pools[mnemonic] == {POOLS[mnemonic]}
