"""Every file of a model says what it was made of, and all say the same."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from aoti_driver.artifacts import info

from tests.artifacts.artifacts import MODELS, artifact

OF_WEIGHTS = ("weights", "packed_weights")


def provenance(file: Path) -> dict[str, Any]:
    (document,) = info.of_file(file, file.name)
    return document


def complete(model: str) -> dict[str, Any]:
    return provenance(artifact(model, ".provenance.json"))


def without(document: dict[str, Any], *keys: str) -> dict[str, Any]:
    return {key: value for key, value in document.items() if key not in keys}


@pytest.mark.parametrize("model", MODELS)
def test_digests_are_those_of_the_files(model: str) -> None:
    document = complete(model)
    for key, suffix in (("weights", ".weights.safetensors"), ("packed_weights", ".safetensors")):
        content = artifact(model, suffix).read_bytes()
        expected = {"sha256": hashlib.sha256(content).hexdigest(), "size": len(content)}
        assert document[key] == expected
    manifest = json.loads(artifact(model, ".manifest.json").read_text(encoding="utf-8"))
    assert document["graph_sha256"] == manifest["program"]["graph_sha256"]
    assert document["torch"] == manifest["program"]["torch_version"]
    assert document["code"]["runtime"] == manifest["shim"]
    assert document["toolchain"]["lock_sha256"], "torch was installed from a lock"


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(("prefix", "suffix"), [("lib", ".so"), ("", ".so")])
def test_compiled_code(model: str, prefix: str, suffix: str) -> None:
    """Nothing of the weights, so that new weights compile nothing."""
    assert provenance(artifact(model, suffix, prefix)) == without(complete(model), *OF_WEIGHTS)


@pytest.mark.parametrize("model", MODELS)
def test_package(model: str) -> None:
    assert provenance(artifact(model, ".pt2")) == complete(model)


@pytest.mark.parametrize("model", MODELS)
def test_packed_weights(model: str) -> None:
    expected = without(complete(model), "packed_weights")
    assert provenance(artifact(model, ".safetensors")) == expected


@pytest.mark.parametrize("model", MODELS)
def test_exported_program(model: str) -> None:
    expected = without(complete(model), "packed_weights", "code")
    assert provenance(artifact(model, ".export.pt2")) == expected


@pytest.mark.parametrize("model", MODELS)
def test_bill_of_materials(model: str) -> None:
    bill = json.loads(artifact(model, ".cdx.json").read_text(encoding="utf-8"))
    hashes = {
        component["name"]: component["hashes"][0]["content"]
        for component in bill["components"]
        if "hashes" in component
    }
    for file in (
        artifact(model, ".so", "lib"),
        artifact(model, ".pt2"),
        artifact(model, ".safetensors"),
    ):
        assert hashes[file.name] == hashlib.sha256(file.read_bytes()).hexdigest(), file.name
    assert hashes["graph"] == complete(model)["graph_sha256"]
