"""Greedy replies of the C++ program are, token by token, those of the model in eager PyTorch."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from gguf import GGUFReader

from examples.cc_chat.testing import greedy, reference_tokenizer
from models.smollm2 import model as smollm2

RUNFILES = Path(os.environ["RUNFILES_DIR"])
GGUF = RUNFILES / os.environ["GGUF"]
CHAT_TOKENS = RUNFILES / os.environ["CHAT_TOKENS"]

MAX_TOKENS = 96
MESSAGES = [
    "Write a short story about the sea.",
    "Explain in detail how a bicycle stays upright, in 3 paragraphs with examples.",
    "Tell me the tale of Rotkäppchen 🐺 \u2013 in 200 words!",
]


def chat_template() -> str:
    template: str = GGUFReader(GGUF).fields["tokenizer.chat_template"].contents()
    return template


def test_same_tokens_as_eager() -> None:
    run = subprocess.run(
        [CHAT_TOKENS, GGUF, str(MAX_TOKENS)],
        input="\n".join(MESSAGES) + "\n",
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    replies = [[int(token) for token in line.split()] for line in run.stdout.splitlines()]
    assert len(replies) == len(MESSAGES)

    tokenizer = reference_tokenizer.load(GGUF)
    model = smollm2.build(str(GGUF))
    for message, reply in zip(MESSAGES, replies, strict=True):
        prompt = tokenizer.encode(greedy.prompt_for(message)).ids
        expected = greedy.eager_reply(model, prompt, MAX_TOKENS)
        assert len(expected) >= 64, f"choose a message with a longer answer: {message}"
        assert reply == expected, "\n--- eager:\n".join(map(tokenizer.decode, (reply, expected)))


def test_template() -> None:
    """The GGUF's template, rendered by the engine it was written for, is `greedy.prompt_for`."""
    import jinja2

    rendered = jinja2.Template(chat_template()).render(
        messages=[{"role": "user", "content": "Hi"}], add_generation_prompt=True
    )
    assert rendered == greedy.prompt_for("Hi")
