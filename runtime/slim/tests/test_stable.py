"""What PyTorch's stable C++ API calls: operators of programs' own register themselves, and call
others."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import dispatcher
import harness
import pytest
import torch
from dispatcher import List, Some
from samples import LAYOUTS, make

slim = harness.load()
KERNEL = ctypes.CFUNCTYPE(None, ctypes.POINTER(ctypes.c_uint64), ctypes.c_uint64, ctypes.c_uint64)
# A kernel must stay as long as the library.
KERNELS: list[Any] = []


def library(kind: str, *arguments: bytes, line: int) -> ctypes.c_void_p:
    handle = ctypes.c_void_p()
    init = getattr(slim.library, f"aoti_torch_library_init_{kind}")
    assert init(*arguments, b"ops.cc", ctypes.c_uint32(line), ctypes.byref(handle)) == 0
    return handle


def define(schema: bytes, line: int = 1) -> None:
    handle = library("def", b"t", line=line)
    assert slim.library.aoti_torch_library_def(handle, schema) == 0
    slim.library.aoti_torch_delete_library_object(handle)


def implement(name: bytes, key: bytes = b"CPU", line: int = 2, types: bytes = b"") -> list[int]:
    """Adds a kernel that negates its first argument, a number; returns what it was called with."""
    counts: list[int] = []

    def kernel(stack: Sequence[int], arguments: int, results: int) -> None:
        counts[:] = [arguments, results]
        stack[0] = -stack[0]  # type: ignore[index]

    KERNELS.append(KERNEL(kernel))
    if types:
        slim.library.aoti_operator_note_types(KERNELS[-1], types)
    handle = library("impl", b"t", key, line=line)
    assert slim.library.torch_library_impl(handle, name, KERNELS[-1], ctypes.c_uint64(0)) == 0
    slim.library.aoti_torch_delete_library_object(handle)
    return counts


def problem(name: str) -> str | None:
    function = slim.library.aoti_slim_operator_problem
    function.restype = ctypes.c_char_p
    text = function(name.encode())
    return None if text is None else text.decode()


def test_an_operator_is_called_by_name() -> None:
    counts = implement(b"negate")  # in any order
    define(b"negate(int x, str s='a, b', int[2] d=[1, 2], *, Tensor(a!)? t=None) -> (int, int)")
    assert problem("t::negate") is None
    stack = (ctypes.c_uint64 * 4)(7)
    assert slim.library.aoti_torch_call_dispatcher(b"t::negate", b"", stack) == 0
    assert stack[0] == 2**64 - 7
    assert counts == [4, 2]


def test_overloads_are_operators_of_their_own() -> None:
    define(b"half(int x) -> int")
    define(b"half.by(int x, int by) -> int")
    implement(b"half.by")
    assert problem("t::half.by") is None
    assert problem("t::half") == (
        "operator t::half of ops.cc:1 has a schema and no kernel for the CPU: add one with "
        "m.impl() in STABLE_TORCH_LIBRARY_IMPL(..., CPU, m)"
    )
    stack = (ctypes.c_uint64 * 2)(7)
    assert slim.library.aoti_torch_call_dispatcher(b"t::half", b"", stack) != 0
    what = slim.library.torch_exception_get_what_without_backtrace()
    assert what == b"operator t::half is not in this program"


def test_a_missing_operator() -> None:
    assert problem("t::absent") == (
        "operator t::absent is not in this program. Give the torch_custom_ops target that has it "
        "to custom_ops of the model"
    )


def test_a_kernel_without_a_schema() -> None:
    implement(b"undeclared")
    assert problem("t::undeclared") == (
        "operator t::undeclared of ops.cc:2 has a kernel and no schema: declare it with m.def() in "
        "STABLE_TORCH_LIBRARY"
    )


@pytest.mark.parametrize("key", [b"Autograd", b"CUDA", b"Meta"])
def test_kernels_for_others_than_the_cpu_are_left_out(key: bytes) -> None:
    name = b"only_" + key.lower()
    define(name + b"(int x) -> int")
    implement(name, key)
    assert "no kernel for the CPU" in str(problem(f"t::{name.decode()}"))


def test_a_schema_that_is_registered_twice() -> None:
    define(b"twice(int x) -> int", line=3)
    define(b"twice(int x) -> int", line=4)
    assert problem("t::twice") == (
        "operator t::twice has two schemas in this program: ops.cc:3 and ops.cc:4. Link one of "
        "them, or give one of the operators another name"
    )


def test_a_kernel_that_is_registered_twice() -> None:
    define(b"both(int x) -> int")
    implement(b"both", line=5)
    implement(b"t::both", b"CompositeExplicitAutograd", line=6)
    assert "has two kernels in this program: ops.cc:5 and ops.cc:6" in str(problem("t::both"))


def test_the_targets_of_two_kernels_are_named() -> None:
    define(b"targets(int x) -> int")
    for target in (b"//a:ops", b"@b//:ops"):
        slim.library.aoti_operators_begin(target)
        implement(b"targets", line=7)
    slim.library.aoti_operators_begin(b"")  # for the other tests
    assert "two kernels in this program: //a:ops (ops.cc:7) and @b//:ops (ops.cc:7). " in str(
        problem("t::targets")
    )


@pytest.mark.parametrize(
    ("types", "expected"),
    [
        (b"Tensor?,int,?->Tensor", None),
        (
            b"Tensor?,float,float->Tensor",
            'argument 2 ("n") is SymInt in its schema, and float in its C++ function',
        ),
        (
            b"Tensor,int,float->Tensor",
            'argument 1 ("x") is Tensor? in its schema, and Tensor in its C++ function',
        ),
        (b"Tensor?,int->Tensor", "its schema has 3 arguments, and its C++ function has 2"),
        (b"Tensor?,int,float->", "its schema has 1 result, and its C++ function has 0"),
        (b"Tensor?,int,float->int", "result 1 is Tensor in its schema, and int in its C++"),
    ],
)
def test_a_schema_that_differs_from_the_function(types: bytes, expected: str | None) -> None:
    name = f"typed_{len(KERNELS)}"
    define(f"{name}(Tensor(a!)? x, SymInt n, float f=1.5) -> Tensor(a!)".encode())
    implement(name.encode(), types=types)
    found = problem(f"t::{name}")
    if expected is None:
        assert found is None
    else:
        assert found is not None and found.startswith(f"operator t::{name} of ops.cc:1: ")
        assert expected in found


@pytest.mark.parametrize("layout", LAYOUTS)
def test_contiguous_and_channels_last(layout: str) -> None:
    x = make((2, 3, 4, 5), torch.float32, layout, special=False)
    for number, memory_format in ((0, torch.contiguous_format), (2, torch.channels_last)):
        (got,) = dispatcher.call(slim, "aten::contiguous", x, number)
        expected = x.contiguous(memory_format=memory_format)
        harness.assert_equal(got, expected)
    with pytest.raises(harness.OpError, match="channels last is a format of 4 or 5 dims, not 2"):
        dispatcher.call(slim, "aten::contiguous", torch.zeros(2, 2), 2)


@pytest.mark.parametrize(
    ("a", "b"), [((0, 3), (3, 2)), ((2, 0), (0, 3)), ((2, 3, 0), (0, 2)), ((4,), (4,))]
)
def test_matmul_of_few_elements(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    x, y = torch.randn(a), torch.randn(b)
    (got,) = dispatcher.call(slim, "aten::matmul", x, y)
    harness.assert_equal(got, x @ y)


def test_matmul_refuses() -> None:
    with pytest.raises(harness.OpError, match="self has 3 columns, other has 4 rows"):
        dispatcher.call(slim, "aten::matmul", torch.zeros(2, 3), torch.zeros(4, 5))
    with pytest.raises(harness.OpError, match="self is float32, other is float64"):
        dispatcher.call(slim, "aten::matmul", torch.zeros(2, 3), torch.zeros(3, 5).double())


@pytest.mark.parametrize("keepdim", [True, False])
@pytest.mark.parametrize("dims", [[0], [-1], [0, 2], []])
def test_reductions(dims: list[int], keepdim: bool) -> None:
    for dtype in (torch.float32, torch.int32, torch.bool):
        x = make((3, 4, 5), dtype, "transposed", special=False)
        (got,) = slim.call("aoti_torch_aten_amax", x, dims, int(keepdim))
        harness.assert_equal(got, x.amax(dims, keepdim))
        (got,) = dispatcher.call(slim, "aten::sum.dim_IntList", x, Some(List(dims)), keepdim, None)
        harness.assert_equal(got, x.sum(dims, keepdim))


def test_amax_of_nan_and_of_nothing() -> None:
    (got,) = slim.call("aoti_torch_aten_amax", torch.tensor([1.0, float("nan"), 2.0]), [0], 0)
    assert got.isnan()
    with pytest.raises(harness.OpError, match="amax: self has no elements"):
        slim.call("aoti_torch_aten_amax", torch.zeros(0), [0], 0)


def test_functions_of_the_c_interface() -> None:
    x, y = torch.randn(3, 4), torch.randn(4).double()
    (got,) = slim.call("aoti_torch_aten_subtract_Tensor", x, y, 2.0)
    harness.assert_equal(got, torch.sub(x, y, alpha=2.0))
    (got,) = slim.call("aoti_torch_aten_full", [2, 3], 1.5, None, None, None, 0, None)
    harness.assert_equal(got, torch.full((2, 3), 1.5))
    (got,) = slim.call("aoti_torch_aten_narrow", x, 1, 1, 2)
    harness.assert_equal(got, x.narrow(1, 1, 2))
    (got,) = slim.call("aoti_torch_aten_new_zeros", x, [2], None, None, None, 0, None)
    harness.assert_equal(got, torch.zeros(2))
    (got,) = slim.call("aoti_torch_aten_pad", x, [1, 2], "constant", 3.0)
    harness.assert_equal(got, torch.nn.functional.pad(x, [1, 2], value=3.0))
    slim.call("aoti_torch_aten_fill__Scalar", x, 7.0)
    assert (x == 7).all()


def test_threads() -> None:
    seen: list[tuple[int, int]] = []
    body = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p)(
        lambda first, last, _: seen.append((first, last))
    )
    numbers = (ctypes.c_int64(3), ctypes.c_int64(10), ctypes.c_int64(100))
    assert slim.library.torch_parallel_for(*numbers, body, None) == 0
    assert seen == [(3, 10)]
