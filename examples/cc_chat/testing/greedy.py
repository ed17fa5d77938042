"""Greedy replies of the model in eager PyTorch: what those of the C++ program must be."""

from __future__ import annotations

import torch

TURN_END = 2


def prompt_for(message: str) -> str:
    """The model's chat template, applied by hand: test_greedy checks that this is right."""
    return (
        "<|im_start|>system\n"
        "You are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n"
        f"<|im_start|>user\n{message}<|im_end|>\n<|im_start|>assistant\n"
    )


@torch.no_grad()
def eager_reply(model: torch.nn.Module, prompt: list[int], max_tokens: int) -> list[int]:
    """Greedy tokens, until the end of the turn."""
    reply: list[int] = []
    new, past = prompt, 0
    while len(reply) < max_tokens:
        total = past + len(new)
        logits = model(
            torch.tensor([new]),
            torch.ones(1, total, dtype=torch.int64),
            torch.arange(past, total),
        )
        token = int(logits[0].argmax())
        if token == TURN_END:
            break
        reply.append(token)
        new, past = [token], total
    return reply
