"""The ONNX files that `prepare` has exported."""

from __future__ import annotations

import json
from pathlib import Path

from benchmarks.peers.protocol import Array, Setup, read_safetensors


class OnnxFiles:
    """Which file serves a case, and its inputs there."""

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        self.folder = Path(setup.files) / "onnx"
        # case -> [model, inputs or null]; null: the case's own
        self.table = json.loads((self.folder / "cases.json").read_text(encoding="utf-8"))

    def model(self, case: str, suffix: str) -> str:
        return str(self.folder / (self.table[case][0] + suffix))

    def inputs(self, case: str, path: str) -> dict[str, Array]:
        own = self.table[case][1]
        return read_safetensors(str(self.folder / own)) if own else self.setup.inputs(path)
