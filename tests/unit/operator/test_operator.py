"""Operators over a library that is written in Python: nothing is compiled."""

from __future__ import annotations

import itertools
import sys
import weakref
from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from aoti_operator import sizes
from aoti_operator.checks import check_kinds
from aoti_operator.declaration import (
    Dim,
    FloatInput,
    Kept,
    Operator,
    Output,
    Size,
    SizeInput,
    TensorInput,
    Training,
)
from aoti_operator.registration import register

BATCH = Size(1, "batch", 0)
X = TensorInput("x", torch.float32, (BATCH, Size(0, None, 2)))
numbers = itertools.count()


class InputError(ValueError):
    """As the module of a model has it."""


class BFloat16Output:
    """An output whose dtype NumPy lacks."""

    dtype = "bfloat16"

    def __init__(self, tensor: torch.Tensor) -> None:
        self._tensor = tensor

    def __dlpack__(self, **kwargs: Any) -> Any:
        return self._tensor.__dlpack__(**kwargs)

    def __dlpack_device__(self) -> Any:
        return self._tensor.__dlpack_device__()


def make_operator(
    call: Callable[..., tuple[Any, ...]],
    inputs: tuple[TensorInput | SizeInput | FloatInput, ...],
    outputs: tuple[Output, ...],
    dims: tuple[Dim, ...] = (Dim("batch", 1, 8),),
    training: Training | None = None,
) -> Operator:
    """An operator whose compiled model is ``call``."""
    library = ModuleType(f"fake_library_{next(numbers)}")
    library.InputError = InputError  # type: ignore[attr-defined]
    library.load = lambda: SimpleNamespace(_flat=call)  # type: ignore[attr-defined]
    sys.modules[library.__name__] = library
    name = f"unit::{library.__name__}"
    return Operator(name, "//unit:fake", library.__name__, dims, inputs, outputs, training)


def make(*args: Any, **kwargs: Any) -> Any:
    return register(make_operator(*args, **kwargs))


def doubled(x: torch.Tensor) -> tuple[Any, ...]:
    assert x.is_contiguous() and not x.requires_grad
    return (x.numpy() * 2,)


DOUBLE = make(doubled, (X,), (Output(torch.float32, lambda batch: (batch, 2)),))


def test_schema_has_what_is_written_to_and_numbers_that_are_sizes() -> None:
    cache = TensorInput("cache", torch.float32, (), mutated=True)
    numbers = SizeInput("n", "n"), FloatInput("scale", 1.0)
    operator = Operator("a::b", "", "", (), (X, cache, *numbers), ())
    assert operator.schema == "(Tensor x, Tensor(a1!) cache, SymInt n, float scale=1.0) -> ()"


def test_pytorchs_own_check() -> None:
    torch.library.opcheck(DOUBLE, (torch.ones(3, 2),))
    torch.library.opcheck(DOUBLE, (torch.ones(2, 3).t(),))


def test_memory_is_shared_in_both_directions() -> None:
    result = np.zeros((1, 2), np.float32)
    seen = []

    def call(x: torch.Tensor) -> tuple[Any, ...]:
        seen.append(x.data_ptr())
        return (result,)

    x = torch.ones(1, 2)
    out = make(call, (X,), (Output(torch.float32, lambda batch: (batch, 2)),))(x)
    assert seen == [x.data_ptr()]
    result[0, 1] = 7
    assert out.tolist() == [[0, 7]]


def test_outputs_that_numpy_lacks() -> None:
    value = torch.ones(3, dtype=torch.bfloat16)
    operator = make(
        lambda x: (BFloat16Output(value),), (X,), (Output(torch.bfloat16, lambda batch: (3,)),)
    )
    out = operator(torch.ones(1, 2))
    assert out.dtype == torch.bfloat16 and out.data_ptr() == value.data_ptr()


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (torch.ones(3, 2, dtype=torch.float64), ": dtype is torch.float64, must be torch.float32"),
        (torch.ones(3), " has 1 dims, must have 2: its sizes are (3,)"),
    ],
)
def test_what_is_refused(x: torch.Tensor, message: str) -> None:
    with pytest.raises(ValueError) as error:
        DOUBLE(x)
    assert str(error.value) == f'unit::fake_library_0: input "x"{message}'


def test_what_is_refused_without_data() -> None:
    with pytest.raises(RuntimeError, match=r'fake_library_0: input "x": dim 1 is 3, must be 2'):
        DOUBLE(torch.ones(2, 3, device="meta"))


def test_errors_of_the_model_have_the_operators_name() -> None:
    def call(x: torch.Tensor) -> tuple[Any, ...]:
        raise InputError('model: input "x": must be small')

    operator = make(call, (X,), (Output(torch.float32, lambda batch: (batch, 2)),))
    with pytest.raises(ValueError, match=r'^unit::\w+: input "x": must be small$'):
        operator(torch.ones(1, 2))


def test_a_tensor_on_another_device_is_refused() -> None:
    operator = Operator("a::b", "", "", (), (X,), ())
    with pytest.raises(ValueError, match='a::b: input "x" is on meta, must be on the CPU'):
        check_kinds(operator, (torch.ones(1, 2, device="meta"),), ["cpu"])


def test_ranges_are_guards_of_what_is_traced() -> None:
    compiled = torch.compile(lambda x: DOUBLE(x) + 1, fullgraph=True, backend="aot_eager")
    for batch in (2, 3, 8):
        assert compiled(torch.ones(batch, 2)).tolist() == [[3, 3]] * batch
    with pytest.raises(Exception, match=r"fake_library_0: batch must be in 1\.\.8"):
        compiled(torch.ones(9, 2))
    with pytest.raises(RuntimeError, match=r"fake_library_0: batch is 9, must be in 1\.\.8"):
        DOUBLE(torch.ones(9, 2, device="meta"))


class Model(torch.nn.Module):
    """A larger model with the operator."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = DOUBLE(x + 1)
        return result


def test_export_asks_for_the_operators_range() -> None:
    sizes = {"x": {0: torch.export.Dim("batch", min=1, max=8)}}
    program = torch.export.export(Model(), (torch.ones(3, 2),), dynamic_shapes=sizes)
    assert program.module()(torch.ones(8, 2)).shape == (8, 2)
    sizes = {"x": {0: torch.export.Dim("batch", min=1, max=99)}}
    with pytest.raises(Exception, match="batch = Dim\\('batch', max=8\\)"):
        torch.export.export(Model(), (torch.ones(3, 2),), dynamic_shapes=sizes)


def test_a_derived_size_and_a_number_that_is_a_size() -> None:
    operator = make(
        lambda x, n: (x.numpy()[: int(n)].copy(),),
        (TensorInput("x", torch.float32, (Size(2, "half", 1),)), SizeInput("n", "n")),
        (Output(torch.float32, lambda half, n: (sizes.min(n, 2 * half + 1),)),),
        (Dim("half", 1, 8), Dim("n", 0, 9)),
    )
    torch.library.opcheck(operator, (torch.arange(5.0), 3))
    compiled: Any = torch.compile(operator, fullgraph=True, dynamic=True, backend="aot_eager")
    for n in (2, 4, 9):
        assert compiled(torch.arange(5.0), n).tolist() == list(range(min(5, n)))
    with pytest.raises(RuntimeError, match="dim 0 is 6, must be 5"):
        operator(torch.ones(6, device="meta"), 3)


def test_a_number() -> None:
    operator = make(
        lambda x, scale: (x.numpy() * np.float32(scale),),
        (X, FloatInput("scale", 3.0)),
        (Output(torch.float32, lambda batch: (batch, 2)),),
    )
    assert operator(torch.ones(1, 2)).tolist() == [[3, 3]]
    assert operator(torch.ones(1, 2), scale=0.5).tolist() == [[0.5, 0.5]]
    torch.library.opcheck(operator, (torch.ones(3, 2), 2.0))


def test_a_size_that_depends_on_data() -> None:
    operator = make(
        lambda x: (x.numpy()[x.numpy() > 0],), (X,), (Output(torch.float32, lambda batch: (None,)),)
    )

    class Positive(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            result: torch.Tensor = operator(x) * 2
            return result

    program = torch.export.export(Positive(), (torch.ones(3, 2),))
    x = torch.tensor([[1.0, -1], [0, 2], [-1, -1]])
    assert program.module()(x).tolist() == [2, 4]


def test_other_strides_are_made_what_was_compiled() -> None:
    def call(image: torch.Tensor) -> tuple[Any, ...]:
        assert image.stride() == (24, 1, 6, 3)
        return (image.numpy().sum(),)

    operator = make(
        lambda image: (np.array(call(image)[0]),),
        (
            TensorInput(
                "image",
                torch.float32,
                (BATCH, Size(0, None, 3), Size(0, None, 4), Size(0, None, 2)),
                strides=lambda batch: (24, 1, 6, 3),
            ),
        ),
        (Output(torch.float32, lambda batch: ()),),
    )
    image = torch.arange(48.0).reshape(2, 3, 4, 2)
    for given in (image, image.contiguous(memory_format=torch.channels_last)):
        assert operator(given).item() == image.sum().item()


def incremented(cache: torch.Tensor) -> tuple[Any, ...]:
    cache += 1
    return ()


INCREMENT = make(
    incremented, (TensorInput("cache", torch.float32, (BATCH, Size(0, None, 2)), mutated=True),), ()
)


@pytest.mark.parametrize("cache", [torch.zeros(3, 2), torch.zeros(2, 3).t()])
def test_what_is_written_reaches_the_caller(cache: torch.Tensor) -> None:
    version = cache._version
    INCREMENT(cache)
    assert cache.tolist() == [[1, 1]] * 3
    assert cache._version > version
    compiled: Any = torch.compile(INCREMENT, fullgraph=True, backend="aot_eager")
    compiled(cache)
    assert cache.tolist() == [[2, 2]] * 3


def test_without_a_backward() -> None:
    x = torch.ones(1, 2, requires_grad=True)
    with torch.no_grad():
        assert not DOUBLE(x).requires_grad
    with pytest.raises(RuntimeError, match="unit::fake_library_0 has no backward: it is compiled "):
        DOUBLE(x).sum().backward()


def test_autocast() -> None:
    x = torch.ones(1, 2, dtype=torch.bfloat16)
    with pytest.raises(ValueError, match=r"dtype is torch\.bfloat16"):
        DOUBLE(x)
    with torch.autocast("cpu", torch.bfloat16):
        assert DOUBLE(x).dtype == torch.float32
    half = TensorInput("half", torch.float16, ())
    assert Operator("", "", "", (), (X, half), ()).autocast_dtype is None
    assert Operator("", "", "", (), (X, SizeInput("n", "n")), ()).autocast_dtype == torch.float32


def make_square() -> Any:
    """The square of x, whose gradient is computed of 2 * x; an integer beside, and one returned."""
    positions = TensorInput("positions", torch.int64, ())
    like_x = Output(torch.float32, lambda batch: (batch, 2))
    outputs = (like_x, Output(torch.int64, lambda batch: (batch, 2)))
    forward = make_operator(
        lambda x, positions: (x.numpy() ** 2, x.numpy().argsort(), 2 * x.numpy()),
        (X, positions),
        (*outputs, like_x),
    )
    gradient = TensorInput("grad_y", torch.float32, X.sizes)
    backward = make_operator(
        lambda doubled, positions, grad_y: (doubled.numpy() * grad_y.numpy(),),
        (TensorInput("saved_0", torch.float32, X.sizes), positions, gradient),
        (like_x,),
    )
    kept = (Kept("output", 2), Kept("input", 1))
    return make(
        lambda x, positions: (x.numpy() ** 2, x.numpy().argsort()),
        (X, positions),
        outputs,
        training=Training(forward, backward, kept),
    )


SQUARE = make_square()


def test_a_backward_of_its_own() -> None:
    """A number among the inputs, and an integer output, have no gradients."""
    x = torch.tensor([[1.0, 2], [3, 4]], requires_grad=True)
    y, order = SQUARE(x, torch.tensor(0))
    assert y.requires_grad and not order.requires_grad
    y.sum().backward()
    assert x.grad is not None and x.grad.tolist() == [[2, 4], [6, 8]]
    torch.library.opcheck(SQUARE, (x, torch.tensor(0)))
    compiled: Any = torch.compile(SQUARE, fullgraph=True, backend="aot_eager")
    (found,) = torch.autograd.grad(compiled(x, torch.tensor(0))[0].sum(), [x])
    assert found.tolist() == [[2, 4], [6, 8]]


def test_what_the_backward_pass_does_not_take_is_not_kept() -> None:
    leaf = torch.ones(1, 2, requires_grad=True)
    x = leaf * 3
    memory = weakref.ref(x)
    y, _ = SQUARE(x, torch.tensor(0))
    del x
    assert memory() is None
    y.sum().backward()
    assert leaf.grad is not None and leaf.grad.tolist() == [[18, 18]]


def test_a_second_derivative_is_refused() -> None:
    """It would be forgotten without a word: what the gradient is computed of is no input."""
    x = torch.ones(1, 2, requires_grad=True)
    loss = SQUARE(x, torch.tensor(0))[0].sum()
    (first,) = torch.autograd.grad(loss, [x], create_graph=True)
    with pytest.raises(RuntimeError, match=r"unit::fake_library_\d+ has no second derivative: "):
        torch.autograd.grad(loss + first.sum(), [x])


def test_autocast_before_a_backward_of_its_own() -> None:
    x = torch.tensor([[1.0, 2]], dtype=torch.bfloat16, requires_grad=True)
    with torch.autocast("cpu", torch.bfloat16):
        y, _ = SQUARE(x, torch.tensor(0))
    assert y.dtype == torch.float32
    y.sum().backward()
    assert x.grad is not None and x.grad.dtype == torch.bfloat16
    assert x.grad.tolist() == [[2, 4]]
