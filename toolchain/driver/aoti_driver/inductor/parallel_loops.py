"""Makes Inductor's loops parallel through the runtime instead of through OpenMP.

Inductor opens one OpenMP region for many loop nests and leaves the loops to ``omp for``. Here each
nest becomes a region of its own, a lambda that runs on each thread: see runtime/core/kernel.h. So
an exception in a loop's body reaches the caller (with OpenMP it ends the process), all models of a
process share its threads, and the number of threads depends on the amount of work at run time.
"""

from __future__ import annotations

import contextlib
import importlib
import re
from collections.abc import Iterator
from typing import Any

from aoti_driver.torch_internals import patching

_CPP = "torch._inductor.codegen.cpp"
_NAMESPACE = "::aoti::kernel"

# Loops with fewer steps are split together with the next inner loop.
_ENOUGH_STEPS = 128

# A rough estimate of the nanoseconds per element of a line of C++, which only serves to find tiny
# loops.
_LINE_COST = 0.5
_CALL_COST = 8.0
_SLOW = re.compile(
    r"\b(?:exp\w*|log\w*|tanh|erf\w*|sin\w*|cos\w*|tan|pow\w*|a(?:cos|sin|tan)\w*)\("
)


class _Regions:
    """Replaces Inductor's WorkSharing: opens and closes the region of the current nest."""

    num_threads = None  # chosen at run time

    def __init__(self, code: Any) -> None:
        self.code = code
        self._stack = contextlib.ExitStack()
        self._open = False

    def parallel(self, _threads: int) -> None:
        assert not self._open
        self._open = True
        self.code.writeline(f"{_NAMESPACE}::Parallel(aoti_threads, [=](int tid, int aoti_parts)")
        self._stack.callback(self.code.writeline, ");")
        self._stack.enter_context(self.code.indent())

    def single(self) -> bool:
        return False

    def close(self) -> None:
        self._stack.close()
        self._open = False

    def __enter__(self) -> _Regions:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@contextlib.contextmanager
def through_the_runtime() -> Iterator[None]:
    """Makes Inductor generate these loops."""
    cpp: Any = importlib.import_module(_CPP)
    generate_loops = patching.original(f"{_CPP}:CppKernel.codegen_loops_impl")
    generate_buffers = patching.original(f"{_CPP}:CppKernel._gen_parallel_reduction_buffers")
    prefix_array = patching.original(f"{_CPP}:reduction_prefix_array")
    lines = patching.original(f"{_CPP}:LoopLevel.lines")

    def loops(kernel: Any, nest: Any, code: Any, regions: Any) -> None:
        if not nest.max_parallel_depth().parallel_depth:
            generate_loops(kernel, nest, code, regions)
            return
        with code.indent():
            fused = isinstance(nest.kernel, cpp.OuterLoopFusedKernel)
            decide = (nest.kernel if fused else kernel).decide_parallel_depth
            depth = decide(nest.max_parallel_depth(), 0)
            steps = " * ".join(map(_steps, _split(nest, depth)))
            time = _nanoseconds(cpp, nest, depth.start_depth)
            code.writeline(f"const int aoti_threads = {_NAMESPACE}::ThreadsFor({steps}, {time});")
            generate_loops(kernel, nest, code, regions)
            regions.close()

    def reduction_buffers(kernel: Any, *args: Any, **kwargs: Any) -> None:
        if not kernel.parallel_reduction_prefix:
            kernel.parallel_reduction_prefix.writeline("const int max_threads = aoti_threads;")
        generate_buffers(kernel, *args, **kwargs)

    def accumulators(name: str, *args: Any) -> Any:
        # A lambda can't capture an array of variable length by value.
        buffer = prefix_array(f"{name}_all", *args)
        text = buffer.getvalue().replace(f"{name}_all_arr", f"{name}_all")
        buffer = type(buffer)()
        buffer.splice(text)
        buffer.writeline(f"auto* const {name}_arr = {name}_all;")
        return buffer

    def mark(nest: Any, depth: Any) -> None:
        split = _split(nest, depth)
        split[0].parallel = depth.parallel_depth
        for level, loop in enumerate(split):
            loop.aoti_split = (split, level)

    def loop_lines(loop: Any) -> Any:
        split = getattr(loop, "aoti_split", None)
        return lines(loop) if split is None else _loop_lines(*split)

    with patching.replaced(
        {
            f"{_CPP}:WorkSharing": _Regions,
            f"{_CPP}:reduction_prefix_array": accumulators,
            f"{_CPP}:CppKernel.codegen_loops_impl": loops,
            f"{_CPP}:CppKernel.decide_parallel_depth": _decide_depth,
            f"{_CPP}:CppKernel._gen_parallel_reduction_buffers": reduction_buffers,
            f"{_CPP}:LoopNest.mark_parallel": mark,
            f"{_CPP}:LoopLevel.lines": loop_lines,
        }
    ):
        yield


def _decide_depth(kernel: Any, most: Any, _threads: int) -> Any:
    """The number of outermost loops that are split together: few, but enough steps for many
    threads.

    It does not depend on the generating machine's number of threads. An unknown size may be 1.
    """
    ranges = kernel.call_ranges[most.start_depth : most.start_depth + most.parallel_depth]
    depth, steps = 0, 1
    for size in ranges:
        if depth and steps >= _ENOUGH_STEPS:
            break
        depth += 1
        steps *= int(size) if size.is_number else 1
    return type(most)(parallel_depth=depth, start_depth=most.start_depth)


def _split(nest: Any, depth: Any) -> list[Any]:
    loops: list[Any] = nest.loops[depth.start_depth : depth.start_depth + depth.parallel_depth]
    return loops


def _nanoseconds(cpp: Any, nest: Any, start: int) -> str:
    """C++ code for the duration of the nest's loops from ``start`` on."""
    fused = isinstance(nest.kernel, cpp.OuterLoopFusedKernel)
    terms = []
    for proxy in [n.kernel for n in nest.kernel.inner] if fused else [nest.kernel]:
        main = proxy.kernels[0]
        lines = [str(i) for b in (main.loads, main.compute, main.stores) for i in b._lines]
        calls = sum(bool(_SLOW.search(line)) for line in lines)
        cost = len(lines) * _LINE_COST + calls * _CALL_COST
        cost /= getattr(main, "tiling_factor", 1)
        sizes = (f"static_cast<double>({_cexpr(size)})" for size in proxy.ranges[start:])
        terms.append(" * ".join([f"{cost:.3g}", *sizes]))
    return " + ".join(terms)


def _cexpr(expression: Any) -> str:
    utils: Any = importlib.import_module("torch._inductor.codegen.cpp_utils")
    return str(utils.cexpr_index(expression))


def _bounds(loop: Any) -> tuple[str, str, str]:
    begin, end, step = map(_cexpr, (loop.offset, loop.size, loop.steps))
    if not loop.steps.is_number:  # the step is 0 if a dim is empty
        step = f"({step} == 0 ? 1 : {step})"
    return begin, end, step


def _steps(loop: Any) -> str:
    return f"{_NAMESPACE}::Steps({', '.join(_bounds(loop))})"


def _loop_lines(split: list[Any], level: int) -> list[str]:
    """The head of one of the loops that are split together; a block follows.

    A thread's part may begin and end within an inner loop; it runs all other inner loops
    completely.
    """
    loop = split[level]
    begin, _, step = _bounds(loop)
    first, last = f"aoti_part.first[{level}]", f"aoti_part.last[{level}]"
    lines = []
    if level == 0:
        counts = ", ".join(map(_steps, split))
        part = f"{_NAMESPACE}::Part<{len(split)}>"
        lines.append(f"const {part} aoti_part({{{counts}}}, tid, aoti_parts);")
    else:
        outer_begin, _, outer_step = _bounds(split[level - 1])
        for name, steps in (("first", "first[{}]"), ("last", "last[{}] - 1")):
            at = f"{outer_begin} + (aoti_part.{steps.format(level - 1)}) * {outer_step}"
            condition = f"{split[level - 1].var} == {at}"
            if level > 1:
                condition = f"aoti_{name}{level - 1} && {condition}"
            lines.append(f"const bool aoti_{name}{level} = {condition};")
        first = f"(aoti_first{level} ? {first} : 0)"
        last = f"(aoti_last{level} ? {last} : {_steps(loop)})"
    lines.append(f"const int64_t aoti_end{level} = {begin} + {last} * {step};")
    if not loop.is_reduction:
        lines.append("#pragma GCC ivdep")
    head = f"int64_t {loop.var} = {begin} + {first} * {step}"
    lines.append(f"for ({head}; {loop.var} < aoti_end{level}; {loop.var} += {step})")
    return lines
