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
from collections.abc import Iterator, Sequence
from typing import Any

from aoti_driver.inductor import ordered_additions
from aoti_driver.torch_internals import patching

_CPP = "torch._inductor.codegen.cpp"
_NAMESPACE = "::aoti::kernel"

# Loops with fewer steps are split together with the next inner loop.
_ENOUGH_STEPS = 128

# Columns of a row that is added to, for each thread. A thread goes through all rows, and those that
# write neighboring cache lines slow each other down.
_ENOUGH_COLUMNS = 64

# A rough estimate of the nanoseconds per element of a line of C++, which only serves to find tiny
# loops.
_LINE_COST = 0.5
_CALL_COST = 8.0
# A line that turns a square of elements takes this for each of them: memory is read or written in
# steps of a row.
_TRANSPOSED_COST = 0.25
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
        self.head = ""  # of the nest's region

    def parallel(self, _threads: int) -> None:
        assert not self._open
        self._open = True
        self.code.writeline(f"{_NAMESPACE}::Parallel(aoti_threads, [=](int tid, int aoti_parts)")
        self._stack.callback(self.code.writeline, ");")
        self._stack.enter_context(self.code.indent())
        self.code.writeline(self.head)

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
        fused = isinstance(nest.kernel, cpp.OuterLoopFusedKernel)
        in_order = not fused and ordered_additions.splittable(kernel) is not None
        for loop in nest.loops or () if in_order else ():
            loop.aoti_in_order = True
        most = nest.max_parallel_depth()
        depth = (nest.kernel if fused else kernel).decide_parallel_depth(most, 0)
        if not depth.parallel_depth:
            generate_loops(kernel, nest, code, regions)
            return
        with code.indent():
            split = _split(nest, depth)
            steps = " * ".join(map(_steps, split))
            if in_order:
                sizes = (f"static_cast<int64_t>({_cexpr(loop.size)})" for loop in split)
                steps = f"{' * '.join(sizes)} / {_ENOUGH_COLUMNS}"
            # Loops outside of those that are split belong to the region, but for a reduction.
            outside = depth.start_depth if split[0].is_reduction else 0
            time = _nanoseconds(cpp, nest, outside)
            code.writeline(f"const int aoti_threads = {_NAMESPACE}::ThreadsFor({steps}, {time});")
            regions.head = _part(split)
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
        written = lines(loop) if split is None else _loop_lines(*split)
        if not getattr(loop, "aoti_in_order", False):
            return written
        # No vectors of several steps, which may add to the same place.
        return [line for line in written if not line.startswith("#pragma")]

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
    """The loops that are split together: few, but enough steps for many threads. They are the
    outermost ones, or where places are added to, the outermost ones that may be split.

    It does not depend on the generating machine's number of threads. An unknown size may be 1.
    """
    start, length = most.start_depth, most.parallel_depth
    splittable = ordered_additions.splittable(kernel)
    if splittable is not None:
        may = [v in splittable for v in kernel.itervars[: kernel.reduction_depth]]
        start = may.index(True) if True in may else 0
        length = [*may, False].index(False, start) - start
    ranges = kernel.call_ranges[start : start + length]
    return type(most)(parallel_depth=_enough(ranges), start_depth=start)


def _enough(ranges: Sequence[Any]) -> int:
    """The number of the first loops that have enough steps."""
    depth, steps = 0, 1
    for size in ranges:
        if depth and steps >= _ENOUGH_STEPS:
            break
        depth += 1
        steps *= int(size) if size.is_number else 1
    return depth


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
        around = main.preloads.getvalue() + main.poststores.getvalue()
        cost += around.count("transpose_mxn") * _TRANSPOSED_COST
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


def _part(split: list[Any]) -> str:
    """A thread's part of the loops that are split together."""
    counts = ", ".join(map(_steps, split))
    return f"const {_NAMESPACE}::Part<{len(split)}> aoti_part({{{counts}}}, tid, aoti_parts);"


def _loop_lines(split: list[Any], level: int) -> list[str]:
    """The head of one of the loops that are split together; a block follows.

    A thread's part may begin and end within an inner loop; it runs all other inner loops
    completely.
    """
    loop = split[level]
    begin, _, step = _bounds(loop)
    first, last = f"aoti_part.first[{level}]", f"aoti_part.last[{level}]"
    lines = []
    if level > 0:
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
