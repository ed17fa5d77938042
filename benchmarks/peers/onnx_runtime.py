"""ONNX Runtime: inputs and outputs stay where they are (IO binding)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import onnxruntime

from benchmarks.peers.onnx_files import OnnxFiles
from benchmarks.peers.protocol import Array, Peer, Setup, main


class OnnxRuntime(Peer):
    def __init__(self, setup: Setup) -> None:
        self.files = OnnxFiles(setup)
        self.options = onnxruntime.SessionOptions()
        self.options.intra_op_num_threads = setup.threads
        self.options.inter_op_num_threads = 1
        self.options.log_severity_level = 3
        self.sessions: dict[str, Any] = {}
        self.cases: dict[str, tuple[Any, Any]] = {}

    def load(self, case: str, path: str) -> None:
        model = self.files.model(case, ".onnx")
        if model not in self.sessions:
            self.sessions[model] = onnxruntime.InferenceSession(
                model, self.options, providers=["CPUExecutionProvider"]
            )
        self.cases[case] = self._bound(case, path)

    def _bound(self, case: str, path: str) -> tuple[Any, Any]:
        session = self.sessions[self.files.model(case, ".onnx")]
        inputs = self.files.inputs(case, path)
        binding = session.io_binding()
        for entry in session.get_inputs():
            binding.bind_cpu_input(entry.name, inputs[entry.name])
        for entry in session.get_outputs():
            binding.bind_output(entry.name, "cpu")
        return session, binding

    def call(self, case: str) -> object:
        session, binding = self.cases[case]
        return session.run_with_iobinding(binding)

    def caller(self, case: str, path: str) -> Callable[[], object]:
        session, binding = self._bound(case, path)
        return lambda: session.run_with_iobinding(binding)

    def outputs(self, case: str) -> list[Array]:
        self.call(case)
        arrays: list[Array] = self.cases[case][1].copy_outputs_to_cpu()
        return arrays


if __name__ == "__main__":
    main(OnnxRuntime)
