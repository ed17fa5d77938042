"""Sessions against eager PyTorch: a hundred calls of streams that take turns."""

from __future__ import annotations

import safetensors.torch
import torch

from examples.cc_stream import detector  # type: ignore[attr-defined]  # generated
from examples.cc_stream.model import Detector


def audio(stream: int, chunk: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(1000 * stream + chunk)
    return torch.randn(1, 160, generator=generator)


def test_a_hundred_calls_of_streams_that_take_turns() -> None:
    model = detector.load()
    sessions = [model.session() for _ in range(3)]
    eager = [Detector().eval() for _ in range(3)]
    heard = []
    with torch.no_grad():
        for chunk in range(100):
            for stream, (session, module) in enumerate(zip(sessions, eager, strict=True)):
                samples = audio(stream, chunk)
                out = torch.from_numpy(session(samples).output)
                torch.testing.assert_close(out, module(samples), rtol=1e-4, atol=1e-5)
                heard.append(float(out))
    assert len(set(heard)) > 250


def test_the_saved_state_is_that_of_eager() -> None:
    session, module = detector.load().session(), Detector().eval()
    with torch.no_grad():
        for chunk in range(5):
            session(audio(0, chunk))
            module(audio(0, chunk))
    saved = safetensors.torch.load(session.save())
    assert sorted(saved) == ["hidden", "tail"]
    for name, value in saved.items():
        torch.testing.assert_close(value, module.get_buffer(name), rtol=1e-4, atol=1e-5)
