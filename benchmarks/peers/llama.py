"""llama.cpp, through llama-cpp-python's bindings of its C functions.

A case is the same work as in the other contestants: so many tokens behind so many others, again and
again. The tokens before those of the case are read once, when it is loaded.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import llama_cpp
import numpy as np

from benchmarks.peers.protocol import Array, Peer, Setup, main, read_safetensors

CONTEXT = 2048


@llama_cpp.llama_log_callback  # type: ignore[untyped-decorator]
def silent(level: int, text: bytes, data: object) -> None:
    """Takes llama.cpp's log, which would be most of the output."""


class Llama(Peer):
    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        llama_cpp.llama_log_set(silent, None)
        llama_cpp.llama_backend_init()
        path = Path(setup.files) / f"model-{setup.model['gguf']}.gguf"
        self.model = llama_cpp.llama_model_load_from_file(
            str(path).encode(), llama_cpp.llama_model_default_params()
        )
        if not self.model:
            raise RuntimeError(f"llama.cpp can't read {path}")
        options = llama_cpp.llama_context_default_params()
        options.n_ctx = options.n_batch = options.n_ubatch = CONTEXT
        options.n_threads = options.n_threads_batch = setup.threads
        # The others keep their state in float32, too.
        options.type_k = options.type_v = llama_cpp.GGML_TYPE_F32
        self.context = llama_cpp.llama_init_from_model(self.model, options)
        vocabulary = llama_cpp.llama_model_get_vocab(self.model)
        self.vocabulary = llama_cpp.llama_vocab_n_tokens(vocabulary)
        self.memory = llama_cpp.llama_get_memory(self.context)
        self.batch = llama_cpp.llama_batch_init(CONTEXT, 0, 1)
        self.cases: dict[str, tuple[list[int], list[int]]] = {}
        self.filled = 0

    def load(self, case: str, path: str) -> None:
        inputs = read_safetensors(path)
        before = inputs["prompt"][0].tolist() if "prompt" in inputs else []
        self.cases[case] = before, inputs["input_ids"][0].tolist()

    def ready(self, case: str) -> None:
        before, _ = self.cases[case]
        if self.filled < len(before):
            llama_cpp.llama_memory_clear(self.memory, True)
            self._decode(before, 0)
            self.filled = len(before)

    def call(self, case: str) -> object:
        before, tokens = self.cases[case]
        first = len(before)
        llama_cpp.llama_memory_seq_rm(self.memory, 0, first, -1)
        self._decode(tokens, first)
        self.filled = first
        return llama_cpp.llama_get_logits_ith(self.context, -1)

    def outputs(self, case: str) -> list[Array]:
        self.ready(case)
        logits: Any = self.call(case)
        return [np.ctypeslib.as_array(logits, (1, self.vocabulary)).copy()]

    def _decode(self, tokens: list[int], first: int) -> None:
        batch = self.batch
        batch.n_tokens = len(tokens)
        for i, token in enumerate(tokens):
            batch.token[i] = token
            batch.pos[i] = first + i
            batch.n_seq_id[i] = 1
            batch.seq_id[i][0] = 0
            batch.logits[i] = i == len(tokens) - 1
        if llama_cpp.llama_decode(self.context, batch):
            raise RuntimeError("llama_decode failed")


if __name__ == "__main__":
    main(Llama)
