"""OpenVINO at the model's precision: its default is bfloat16 where the CPU has it.

One caller has its latency mode, several have as many streams as the CPUs allow.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from benchmarks.peers.onnx_files import OnnxFiles
from benchmarks.peers.protocol import Array, Peer, Setup, main
from benchmarks.peers.silent_openvino import openvino


class OpenVino(Peer):
    def __init__(self, setup: Setup) -> None:
        self.files = OnnxFiles(setup)
        self.core = openvino.Core()
        cpus = len(os.sched_getaffinity(0))
        streams = max(1, min(setup.callers, cpus // setup.threads))
        self.options = {
            "PERFORMANCE_HINT": "LATENCY" if streams == 1 else "THROUGHPUT",
            "INFERENCE_NUM_THREADS": setup.threads * streams,
            "NUM_STREAMS": streams,
            "INFERENCE_PRECISION_HINT": "bf16" if setup.model["precision"] == "bfloat16" else "f32",
        }
        self.models: dict[str, Any] = {}
        self.cases: dict[str, tuple[Any, dict[str, Any]]] = {}

    def load(self, case: str, path: str) -> None:
        model = self.files.model(case, ".xml")
        if model not in self.models:
            self.models[model] = self.core.compile_model(model, "CPU", self.options)
        self.cases[case] = self._request(case, path)

    def _request(self, case: str, path: str) -> tuple[Any, dict[str, Any]]:
        compiled = self.models[self.files.model(case, ".xml")]
        inputs = self.files.inputs(case, path)
        named = {port.any_name: inputs[port.any_name] for port in compiled.inputs}
        return compiled.create_infer_request(), named

    def call(self, case: str) -> object:
        request, inputs = self.cases[case]
        return request.infer(inputs, share_inputs=True, share_outputs=True)

    def caller(self, case: str, path: str) -> Callable[[], object]:
        request, inputs = self._request(case, path)
        return lambda: request.infer(inputs, share_inputs=True, share_outputs=True)

    def outputs(self, case: str) -> list[Array]:
        return [array.copy() for array in self._results(case)]

    def _results(self, case: str) -> list[Array]:
        request, inputs = self.cases[case]
        return list(request.infer(inputs, share_inputs=True).values())


if __name__ == "__main__":
    main(OpenVino)
