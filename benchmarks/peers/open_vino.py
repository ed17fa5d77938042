"""OpenVINO in its latency mode, at float32: its default is bfloat16 where the CPU has it."""

from __future__ import annotations

from typing import Any

import openvino

from benchmarks.peers.onnx_files import OnnxFiles
from benchmarks.peers.protocol import Array, Peer, Setup, main


class OpenVino(Peer):
    def __init__(self, setup: Setup) -> None:
        self.files = OnnxFiles(setup)
        self.core = openvino.Core()
        self.options = {
            "PERFORMANCE_HINT": "LATENCY",
            "INFERENCE_NUM_THREADS": setup.threads,
            "NUM_STREAMS": 1,
            "INFERENCE_PRECISION_HINT": "f32",
        }
        self.models: dict[str, Any] = {}
        self.cases: dict[str, tuple[Any, dict[str, Any]]] = {}

    def load(self, case: str, path: str) -> None:
        model = self.files.model(case, ".xml")
        if model not in self.models:
            self.models[model] = self.core.compile_model(model, "CPU", self.options)
        compiled = self.models[model]
        inputs = self.files.inputs(case, path)
        named = {port.any_name: inputs[port.any_name] for port in compiled.inputs}
        self.cases[case] = compiled.create_infer_request(), named

    def call(self, case: str) -> object:
        request, inputs = self.cases[case]
        return request.infer(inputs, share_inputs=True, share_outputs=True)

    def outputs(self, case: str) -> list[Array]:
        return [array.copy() for array in self._results(case)]

    def _results(self, case: str) -> list[Array]:
        request, inputs = self.cases[case]
        return list(request.infer(inputs, share_inputs=True).values())


if __name__ == "__main__":
    main(OpenVino)
