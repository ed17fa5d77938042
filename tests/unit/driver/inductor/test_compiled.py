"""Generated code, compiled and run: several programs in one library, against eager PyTorch."""

from __future__ import annotations

import ctypes
import re
import subprocess
from pathlib import Path

import pytest
import torch

from tests.unit.driver.inductor import models
from tests.unit.driver.inductor.harness import Compiled


def test_every_size_of_the_range(built: Path, library: ctypes.CDLL) -> None:
    eager, *_ = models.mlp()
    compiled = Compiled(library, "mlp", built / "mlp")
    for batch in (1, 2, 7, 8, 64):
        x = torch.randn(batch, 6)
        with torch.no_grad():
            torch.testing.assert_close(compiled(x), [eager(x)])


def test_state_views_and_outputs(built: Path, library: ctypes.CDLL) -> None:
    eager, *_ = models.odd()
    compiled = Compiled(library, "odd", built / "odd")
    other = Compiled(library, "odd", built / "odd")
    assert (compiled.counts.inputs, compiled.counts.outputs) == (1, 7)
    for n in (2, 4, 16):
        x = torch.randn(n, 4)
        with torch.no_grad():
            expected = {k: v for k, v in eager(x).items() if isinstance(v, torch.Tensor)}
        got = compiled(x)
        torch.testing.assert_close(dict(zip(expected, got)), expected)
        memory = {x.data_ptr(), *(c.data_ptr() for c in compiled.constants)}
        assert not memory & {t.data_ptr() for t in got}, "an output is borrowed memory"
    # Another instance has its own counter.
    assert other(torch.randn(2, 4))[2].item() == 1.0


def test_cache_is_written_in_place(built: Path, library: ctypes.CDLL) -> None:
    eager, *_ = models.cached()
    compiled = Compiled(library, "cached", built / "cached")
    caches = torch.zeros(1, 32, 8), torch.zeros(1, 32, 8)
    begin = 0
    for length in (7, 1, 1, 12):
        x, position = torch.randn(1, length, 8), torch.arange(begin, begin + length)
        begin += length
        with torch.no_grad():
            expected = eager(x, position, caches[0])
        torch.testing.assert_close(compiled(x, position, caches[1]), [expected])
        torch.testing.assert_close(caches[1], caches[0])
    text = (built / "cached" / "wrapper.cpp").read_text(encoding="utf-8")
    assert not re.search(r"aoti_torch_\w*(clone|copy_)", text)
    # A kernel writes into the input's memory.
    assert re.search(r"\(float\*\)\(arg\w+\.data_ptr\(\)\)", text)


def test_numbers_and_written_parameters(built: Path, library: ctypes.CDLL) -> None:
    eager, *_ = models.numbers()
    compiled = Compiled(library, "numbers", built / "numbers")
    assert (compiled.counts.inputs, compiled.counts.outputs) == (3, 2)
    for rows, n, length in ((9, 5, 3), (20, 20, 1), (4, 2, 4)):
        x = torch.randn(rows, 4)
        with torch.no_grad():
            expected = eager(x, n, torch.tensor(length))
        got = compiled(x, torch.tensor(n), torch.tensor(length))
        torch.testing.assert_close(got, list(expected))


@pytest.mark.parametrize("program", ["image", "image_baseline"])
def test_what_follows_convolutions(program: str, built: Path, library: ctypes.CDLL) -> None:
    eager, *_ = models.image()
    compiled = Compiled(library, program, built / program)
    for batch in (1, 3, 8):
        x = torch.randn(batch, 3, 12, 13)
        with torch.no_grad():
            torch.testing.assert_close(compiled(x), list(eager(x)))


def test_batch_norms_and_attention(built: Path, library: ctypes.CDLL) -> None:
    eager, *_ = models.dense()
    compiled = Compiled(library, "dense", built / "dense")
    for batch in (1, 3, 8):
        x = torch.randn(batch, 3, 6, 5)
        with torch.no_grad():
            torch.testing.assert_close(compiled(x), list(eager(x)), rtol=1e-4, atol=1e-4)


def test_concatenations(built: Path, library: ctypes.CDLL) -> None:
    eager, *_ = models.concatenated()
    compiled = Compiled(library, "concatenated", built / "concatenated")
    for batch, height, width in ((1, 1, 1), (2, 3, 20), (3, 16, 2), (1, 20, 20)):
        x = torch.randn(batch, 4, height, width)
        with torch.no_grad():
            torch.testing.assert_close(compiled(x), list(eager(x)), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("program", ["enlarged", "enlarged_baseline"])
def test_images_that_become_larger(program: str, built: Path, library: ctypes.CDLL) -> None:
    eager, *_ = models.enlarged()
    compiled = Compiled(library, program, built / program)
    for batch, height, width in ((1, 1, 1), (2, 3, 20), (3, 16, 2), (1, 20, 20)):
        x = torch.randn(batch, 4, height, width) * 10
        with torch.no_grad():
            torch.testing.assert_close(
                compiled(x), list(eager(x)), rtol=1e-4, atol=1e-4, equal_nan=True
            )


def test_no_symbol_is_exported_by_programs(built: Path) -> None:
    done = subprocess.run(
        ["nm", "-D", "--defined-only", "-C", str(built / "programs.so")],
        capture_output=True,
        text=True,
        check=True,
    )
    names = [line.split(" ", 2)[2] for line in done.stdout.splitlines()]
    own = [n for n in names if "cpp_fused" in n or "AOTInductorModel" in n or "aoti_prog" in n]
    assert own == []
