"""Programs for CUDA in the emulator against eager PyTorch: two sizes each, twice, by two models.

The emulator fails the test where memory of the GPU, or anything else of the driver, is left.
"""

from __future__ import annotations

import copy
import importlib
from collections.abc import Sequence
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils.dlpack import from_dlpack

from tests.cuda import alike, models_py


def image(batch: int, channels: int, size: int, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.randn(batch, channels, size, size).to(dtype)


def text(batch: int, seq: int) -> tuple[Tensor, Tensor]:
    """Ids, and a mask that leaves out the end of all rows but the first."""
    lengths = torch.tensor([seq - row % seq for row in range(batch)])
    return torch.randint(0, 50, (batch, seq)), torch.arange(seq) < lengths.unsqueeze(1)


def ties(rows: int, n: int) -> Tensor:
    """Numbers, many of which are equal, and NaN."""
    x = torch.randn(rows, n)
    x[:, ::3] = x[:, :1]
    x[0, -1] = float("nan")
    return x


CALLS: dict[str, Sequence[tuple[Any, ...]]] = {
    "attention": [(torch.randn(1, 5, 32).bfloat16(),), (torch.randn(2, 33, 32).bfloat16(),)],
    "audio": [(torch.randn(1, 2, 8),), (torch.randn(3, 2, 38),)],
    "bert": [text(1, 7), text(3, 16)],
    "cnn": [(image(1, 3, 8),), (image(3, 3, 8),)],
    "groups": [(torch.randn(n, 4), torch.randint(0, 3, (n, 4))) for n in (1, 9)],
    "lookup": [
        (
            torch.randint(0, 12, (batch, 5)),
            torch.randn(rows, 8),
            torch.randint(-rows, rows, (batch, 3)),
        )
        for batch, rows in ((1, 3), (4, 17))
    ],
    "mlp": [(torch.randn(1, 8),), (torch.randn(33, 8),)],
    "norms": [(image(1, 4, 6, torch.bfloat16),), (image(3, 4, 6, torch.bfloat16),)],
    "numbers": [(torch.randn(n), k, scale) for n, k, scale in ((8, 1, 0.5), (33, 5, 2.0))],
    "ranks": [(ties(1, 5),), (ties(2, 1100),)],
    "resized": [(torch.randn(2, 2, 20, 4),), (torch.randn(1, 2, 4, 30),)],
    "router": [(torch.randn(rows, 8), torch.rand(rows)) for rows in (1, 13)],
}


def compiled(name: str, **options: Any) -> Any:
    return importlib.import_module(f"tests.cuda.{name}").load(**options)


def eager(name: str) -> nn.Module:
    torch.manual_seed(0)  # as the build does before it makes the weights
    module: nn.Module = getattr(models_py, name.capitalize())()
    return module.eval()


def results(module: nn.Module, args: Sequence[Any]) -> tuple[Tensor, ...]:
    with torch.no_grad():
        found = module(*args)
    return found if isinstance(found, tuple) else (found,)


def unrounded(module: nn.Module, args: Sequence[Any]) -> tuple[Tensor, ...]:
    """What eager PyTorch gives, without the rounding after each of its operators if the module is
    one of bfloat16: that alone is up to two units.
    """
    tensors = [*module.parameters(), *(arg for arg in args if isinstance(arg, Tensor))]
    if any(tensor.dtype != torch.bfloat16 for tensor in tensors):
        return results(module, args)
    return results(copy.deepcopy(module).double(), [arg.double() for arg in args])


def assert_alike(model: Any, module: nn.Module, args: tuple[Any, ...]) -> None:
    every = zip(model(*args), results(module, args), unrounded(module, args), strict=True)
    for result, eager, expected in every:
        alike.assert_alike(from_dlpack(result), eager, expected)


@pytest.mark.parametrize("name", CALLS)
def test_like_eager(name: str) -> None:
    model, module = compiled(name), eager(name)
    for args in [*CALLS[name], *CALLS[name]]:
        assert_alike(model, module, args)


@pytest.mark.parametrize("name", CALLS)
def test_two_at_a_time(name: str) -> None:
    """Two loaded models of one program take turns, with two sizes each: neither disturbs the other.

    They have no state, and so no sessions; those of the model with state are in
    test_state_of_two_sessions.
    """
    first, second = compiled(name), compiled(name)
    module = eager(name)
    for one, other in (CALLS[name], reversed(CALLS[name])):
        assert_alike(first, module, one)
        assert_alike(second, module, other)


@pytest.mark.parametrize("name", CALLS)
def test_graphs(name: str) -> None:
    """The second call with the same sizes is recorded, and the third one is a replay."""
    model, module = compiled(name, cuda_graphs=True), eager(name)
    first, second = CALLS[name]
    other = tuple(arg.flip(0) if isinstance(arg, Tensor) else arg for arg in second)
    for args in (first, second, second, first, other, second):
        assert_alike(model, module, args)


@pytest.mark.parametrize("rows", [1, 16, 17, 20, 21, 40])
def test_rows_at_the_borders_of_kernels(rows: int) -> None:
    """The table's kernels are for up to 16 rows and for more; the tuning file's, for up to 20."""
    model, module = compiled("products"), eager("products")
    assert_alike(model, module, (torch.randn(rows, 24), torch.randn(rows, 3, 3, 3)))


def test_numbers_in_graphs() -> None:
    """They are no part of what calls that share a graph have alike."""
    model, module = compiled("numbers", cuda_graphs=True), eager("numbers")
    x = torch.randn(9)
    for k, scale in ((2, 0.5), (2, 0.5), (3, 1.5), (8, 0.0), (2, 4.0)):
        assert_alike(model, module, (x, k, scale))


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_state_of_two_sessions(device: str) -> None:
    """Each session has its own cache on the device; the model's own is another one."""
    model = compiled("decoder", device=device, cuda_graphs=True)
    sessions = [model.session(), model.session(), model]
    modules = [eager("decoder") for _ in sessions]
    for token in (3, 7, 7, 0):
        for row, (session, module) in enumerate(zip(sessions, modules, strict=True)):
            assert_alike(session, module, (torch.tensor([(token + row) % 20]),))


def test_a_device_that_the_target_lacks() -> None:
    expected = (
        "^mlp: can't be loaded for the device cpu: the model was compiled for cuda. Load it for "
        r'that, or build //tests/cuda:mlp\S* with devices = \["cpu", "cuda"\]$'
    )
    with pytest.raises(ValueError, match=expected):
        compiled("mlp", device="cpu")


def test_an_index_out_of_range() -> None:
    """An error of the call, after which the model works as before."""
    model, module = compiled("lookup"), eager("lookup")
    ids, table, order = CALLS["lookup"][1]
    with pytest.raises(RuntimeError, match="index 99 is out of range for a dimension of size 17"):
        model(ids, table, torch.full_like(order, 99))
    assert_alike(model, module, (ids, table, order))


@pytest.mark.parametrize("column", [0, 3])
def test_a_group_out_of_range(column: int) -> None:
    """Places of scatters are checked as indices of lookups are."""
    # The values of an input are checked before: kernels check what a model computes.
    model, module = compiled("groups", check_values=False), eager("groups")
    x, to = CALLS["groups"][1]
    wrong = to.clone()
    wrong[4, column] = -1
    with pytest.raises(RuntimeError, match="index 3 is out of range for a dimension of size 3"):
        model(x, wrong)
    assert_alike(model, module, (x, to))


def drawn(model: Any, x: Tensor) -> list[Tensor]:
    return [from_dlpack(result).clone() for result in model(x)]


@pytest.mark.parametrize("graphs", [False, True])
def test_random_numbers(graphs: bool) -> None:
    """The same after the same seed, and others in each call; no graph repeats them."""
    model = compiled("draws", cuda_graphs=graphs)
    x = torch.randn(16, 6)
    runs = []
    for _ in range(2):
        model.manual_seed(7)
        runs.append([drawn(model, x) for _ in range(3)])
    for first, second in zip(*runs, strict=True):
        torch.testing.assert_close(first, second, rtol=0, atol=0)
    noises = [noise for noise, *_ in runs[0]]
    assert len({float(noise[0, 0]) for noise in noises}) == 3
    every = torch.cat(noises)
    assert len(set(every.flatten().tolist())) == every.numel()
    assert abs(float(every.mean())) < 0.3
    assert 0.7 < float(every.std()) < 1.3
    assert 0 <= int(runs[0][0][2].min()) <= int(runs[0][0][2].max()) < 6


def philox(seed: int, place: int) -> tuple[int, int]:
    """The first two words of Philox4x32-10."""
    c, (k0, k1) = [place, 0, 0, 0], (seed & 0xFFFFFFFF, seed >> 32 & 0xFFFFFFFF)
    for _ in range(10):
        a, b = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [b >> 32 ^ c[1] ^ k0, b & 0xFFFFFFFF, a >> 32 ^ c[3] ^ k1, a & 0xFFFFFFFF]
        k0, k1 = k0 + 0x9E3779B9 & 0xFFFFFFFF, k1 + 0xBB67AE85 & 0xFFFFFFFF
    return c[0], c[1]


def test_integers_are_philox_of_a_seed_of_the_generator() -> None:
    model = compiled("draws")
    model.manual_seed(7)
    integers = drawn(model, torch.randn(2, 6))[1].tolist()
    torch.manual_seed(7)
    every = torch.iinfo(torch.int64)
    seeds = torch.randint(every.min, every.max, (3,)).tolist()
    expected = []
    for seed in seeds:
        words = (philox(seed, place) for place in range(8))
        expected.append([(low | high << 32) % 1000 for low, high in words])
    assert integers in expected
