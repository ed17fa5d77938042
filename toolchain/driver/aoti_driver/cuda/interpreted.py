"""Triton's kernels on the CPU, by Triton's interpreter: the reference of operators that are written
with Triton and have no kernel for the CPU.

It computes with NumPy, one program of the grid after the other.
"""

from __future__ import annotations

import functools
import importlib
from typing import Any


def launch_on_cpu() -> None:
    """From now on, a launch of a kernel, which would need a GPU, is interpreted."""
    jit: Any = importlib.import_module("triton.runtime.jit")
    autotuner: Any = importlib.import_module("triton.runtime.autotuner")
    interpreter: Any = importlib.import_module("triton.runtime.interpreter")

    @functools.cache
    def interpreted(function: Any) -> Any:
        return interpreter.InterpretedFunction(function)

    def run(kernel: Any, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> None:
        interpreted(kernel.fn).run(*args, grid=grid, warmup=warmup, **kwargs)

    def call(kernel: Any, *args: Any, **kwargs: Any) -> Any:
        """One kernel calls another, or a function of Triton's own library."""
        return interpreted(kernel.fn)(*args, **kwargs)

    def run_first(tuner: Any, *args: Any, **kwargs: Any) -> None:
        # As in generated code: choosing another configuration would need a GPU.
        tuner.fn.run(*args, **kwargs, **tuner.configs[0].all_kwargs())

    jit.JITFunction.run = run
    jit.JITFunction.__call__ = call
    autotuner.Autotuner.run = run_first
