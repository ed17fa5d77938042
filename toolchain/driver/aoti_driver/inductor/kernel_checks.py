"""The checks in generated kernels: they throw exceptions with messages for users.

Inductor's own checks name C++ variables, do not check masked indices, and record a division by zero
in one variable that all kernels of the process share.
"""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Iterator
from typing import Any

import torch

from aoti_driver.torch_internals import patching

_CPP = "torch._inductor.codegen.cpp"
_COMMON = "torch._inductor.codegen.common"
_DIVISION_LINES = frozenset(
    {
        "std::atomic<int> inductor_cpu_integer_div_error{0};",
        "inductor_cpu_integer_div_error_flag = &inductor_cpu_integer_div_error;",
        "inductor_cpu_integer_div_error_flag = nullptr;",
        "inductor_cpu_throw_if_integer_div_error(inductor_cpu_integer_div_error);",
    }
)


@contextlib.contextmanager
def throwing() -> Iterator[None]:
    """Makes Inductor generate these checks; they need runtime/core/kernel.h."""
    cpp: Any = importlib.import_module(_CPP)
    check_bounds = patching.original(f"{_CPP}:CppKernel.check_bounds")
    indirect_indexing = patching.original(f"{_COMMON}:CSEProxy.indirect_indexing")
    codegen_group = patching.original(f"{_CPP}:KernelGroup.codegen_group")
    size_text = "0"
    wrapped = False

    def check_index(kernel: Any, expr: Any, size: Any, lower: bool, upper: bool) -> None:
        nonlocal size_text
        size_text = kernel.sexpr(kernel.rename_indexing(size))
        check_bounds(kernel, expr, size, lower, upper)

    def indexing(proxy: Any, var: Any, size: Any, check: bool = True, wrap_neg: bool = True) -> Any:
        nonlocal wrapped
        wrapped = bool(wrap_neg and var.bounds.lower < 0)
        try:
            return indirect_indexing(proxy, var, size, check, wrap_neg)
        finally:
            wrapped = False

    def failing() -> str:
        return f"{size_text}, {str(wrapped).lower()}"

    def scalar(
        _kernel: Any, var: Any, lower: str | None, upper: str | None, mask: Any = None
    ) -> str:
        used = ""
        if mask is not None:
            used = (
                f"!({mask}).all_zero() && " if getattr(mask, "is_vec", False) else f"({mask}) && "
            )
        bounds = _bounds(str(var), lower, upper)
        return f"if ({used}!({bounds})) [[unlikely]] ::aoti::kernel::IndexError({var}, {failing()})"

    def vector(
        kernel: Any, var: Any, lower: str | None, upper: str | None, mask: Any = None
    ) -> str:
        if not var.is_vec:
            return scalar(kernel, var, lower, upper, mask)
        kind, mask_kind = kernel._get_vec_type(var.dtype), kernel._get_mask_type(var.dtype)
        bounds = _bounds(str(var), lower and f"{kind}({lower})", upper and f"{kind}({upper})")
        good = f"{mask_kind}({bounds})"
        used = "true"
        if mask is not None:
            if mask.is_vec:
                used = f"({mask}).is_masked(aoti_lane)"
                cpp_type, count = cpp.DTYPE_TO_CPP[var.dtype], kernel._get_num_vectors(var.dtype)
                mask = f"({mask}).template cast<{cpp_type},{count}>()"
            else:
                used = f"({mask})"
                mask = f"{mask_kind}::from({mask})"
            good = f"({good} | ~{mask})"
        lanes = f"{kind}::size()"
        if kernel.tail_size:
            lanes = cpp.cexpr_index(kernel.tail_size)
            good = f"{mask_kind}::set({mask_kind}::from(1), {good}, {lanes})"
        return (
            f"if (!({good}).all_masked()) [[unlikely]] ::aoti::kernel::VectorIndexError("
            f"{var}, {lanes}, {failing()}, [&](int aoti_lane) {{ return {used}; }})"
        )

    def group(kernels: Any, name: str | None = None) -> str:
        lines: list[str] = codegen_group(kernels, name).splitlines(keepends=True)
        kept = [line for line in lines if line.strip() not in _DIVISION_LINES]
        if lines and len(lines) - len(kept) != len(_DIVISION_LINES):
            raise AssertionError(f"torch {torch.__version__} writes other kernels")
        return "".join(kept)

    with patching.replaced(
        {
            f"{_COMMON}:CSEProxy.indirect_indexing": indexing,
            f"{_COMMON}:Kernel.indirect_assert": scalar,
            f"{_CPP}:CppKernel.check_bounds": check_index,
            f"{_CPP}:CppVecKernel.indirect_assert": vector,
            f"{_CPP}:KernelGroup.codegen_group": group,
        }
    ):
        yield


def _bounds(var: str, lower: str | None, upper: str | None) -> str:
    terms = [f"({lower} <= {var})"] if lower else []
    terms += [f"({var} < {upper})"] if upper else []
    return " & ".join(terms)
