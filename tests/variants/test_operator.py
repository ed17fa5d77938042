"""An operator of PyTorch that chooses a variant, in eager mode and in what PyTorch traces."""

import pytest
import torch
from torch import Tensor, nn

from tests.variants import columns, columns_op  # type: ignore[attr-defined]  # generated

MODEL = columns.load()


@pytest.mark.parametrize("n", [2, 7, 8, 9, 512])
def test_eager_mode(n: int) -> None:
    x = torch.randn(4, n)
    torch.testing.assert_close(columns_op(x), torch.softmax(x, dim=0))
    assert MODEL.explain(x).variant == ("any" if n % 8 else "eights")


@pytest.mark.parametrize("dynamic", [False, True])
def test_compile(dynamic: bool) -> None:
    def shifted(x: Tensor) -> Tensor:
        y: Tensor = columns_op(x) + 1
        return y

    compiled = torch.compile(shifted, fullgraph=True, dynamic=dynamic, backend="aot_eager")
    for n in (8, 9, 16, 17):
        x = torch.randn(4, n)
        torch.testing.assert_close(compiled(x), torch.softmax(x, dim=0) + 1)


def test_export_of_a_larger_model() -> None:
    class Larger(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            y: Tensor = columns_op(2 * x)
            return y

    n = torch.export.Dim("n", min=2, max=512)
    program = torch.export.export(Larger(), (torch.randn(4, 11),), dynamic_shapes=({1: n},))
    for size in (8, 9):
        x = torch.randn(4, size)
        torch.testing.assert_close(program.module()(x), torch.softmax(2 * x, dim=0))


def test_sizes_that_no_variant_takes() -> None:
    with pytest.raises(ValueError, match=r"tests_variants::columns_op: no variant takes the call"):
        columns_op(torch.randn(4, 1))
    with pytest.raises(ValueError, match=r'input "x": dtype is torch.float64, must be'):
        columns_op(torch.randn(4, 8).double())
    with pytest.raises(RuntimeError, match=r"n is 513, must be in 2\.\.512"):
        columns_op(torch.empty(4, 513, device="meta"))


@pytest.mark.parametrize(("n", "variant"), [(2, 1), (7, 1), (8, 0), (9, 1), (512, 0)])
def test_training_takes_the_variant_of_the_sizes(n: int, variant: int) -> None:
    x = torch.randn(4, n, requires_grad=True)
    weights = torch.randn(4, n)
    with torch.profiler.profile() as profile:
        (found,) = torch.autograd.grad((columns_op(x) * weights).sum(), [x])
    (expected,) = torch.autograd.grad((torch.softmax(x, dim=0) * weights).sum(), [x])
    torch.testing.assert_close(found, expected)
    names = {event.name for event in profile.events() if event.name.startswith("tests_variants")}
    step = {f"tests_variants::columns_op_{part}_{variant}" for part in ("training", "backward")}
    assert names == {"tests_variants::columns_op", *step}


@pytest.mark.parametrize("dynamic", [False, True])
def test_training_under_torch_compile(dynamic: bool) -> None:
    compiled = torch.compile(
        lambda x: (columns_op(x) * x).sum(), fullgraph=True, dynamic=dynamic, backend="aot_eager"
    )
    for n in (8, 9, 16, 17):
        x = torch.randn(4, n, requires_grad=True)
        (found,) = torch.autograd.grad(compiled(x), [x])
        (expected,) = torch.autograd.grad((torch.softmax(x, dim=0) * x).sum(), [x])
        torch.testing.assert_close(found, expected)
