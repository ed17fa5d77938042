"""The chat example, built for AArch64: replies token by token those of eager PyTorch here."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from examples.cc_chat.testing import greedy, reference_tokenizer
from models.smollm2 import model as smollm2

RUNFILES = Path(os.environ["RUNFILES_DIR"])
GGUF = RUNFILES / os.environ["GGUF"]

# A token takes a second or two in the emulator.
MAX_TOKENS = 12
MESSAGE = "Write a short story about the sea."


def test_same_tokens_as_eager() -> None:
    run = subprocess.run(
        [
            *(RUNFILES / os.environ["EMULATOR"], RUNFILES / os.environ["CHAT_TOKENS"]),
            *(GGUF, str(MAX_TOKENS)),
        ],
        input=MESSAGE + "\n",
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    reply = [int(token) for token in run.stdout.split()]

    tokenizer = reference_tokenizer.load(GGUF)
    prompt = tokenizer.encode(greedy.prompt_for(MESSAGE)).ids
    expected = greedy.eager_reply(smollm2.build(str(GGUF)), prompt, MAX_TOKENS)
    assert len(expected) == MAX_TOKENS
    assert reply == expected, "\n--- eager:\n".join(map(tokenizer.decode, (reply, expected)))
