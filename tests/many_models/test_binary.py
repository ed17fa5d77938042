"""A binary has the provenance of each model in it."""

from __future__ import annotations

import os
from pathlib import Path

from aoti_driver.artifacts import info


def test_every_model() -> None:
    binary = Path(os.environ["BINARY"])
    models = {
        document["model"].rpartition(":")[2]: document["code"]["isa"]
        for document in info.of_file(binary, binary.name)
    }
    assert models == {
        "affine_v1": "x86-64",
        "affine_v2": "x86-64",
        "affineV2": "x86-64-v3",
        "counter": "x86-64",
    }
