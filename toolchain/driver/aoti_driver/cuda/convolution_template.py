"""The kernel of a convolution of any number of dims, as a template of Inductor's.

A block of threads computes BLOCK_M places of the result by BLOCK_N channels, as products of pieces
of the input and of the weight, one for each tap of the kernel.

Of a transposed convolution, the places whose remainders by the stride are the same form a phase.
The blocks of a phase look only at the taps that reach its places.
"""

from __future__ import annotations

import functools
import math
import textwrap
from collections.abc import Sequence
from typing import Any


@functools.cache
def template(dims: int, transposed: bool) -> Any:
    from torch._inductor import select_algorithm

    kind = "_transposed" if transposed else ""
    return select_algorithm.TritonTemplate(
        name=f"aoti_convolution{dims}d{kind}",
        grid=select_algorithm.SymbolicGridFn(_grid_transposed if transposed else _grid),
        source=_source(dims, transposed),
    )


def constants(
    kernel: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    groups: int,
) -> dict[str, int]:
    """Those of the template's source."""
    result = {"GROUPS": groups}
    for dim, (size, step, pad, spread) in enumerate(
        zip(kernel, stride, padding, dilation, strict=True)
    ):
        # Taps that reach the same phase are TAP_STEP apart.
        common = math.gcd(step, spread)
        tap_step = step // common
        result |= {
            f"KERNEL_{dim}": size,
            f"STRIDE_{dim}": step,
            f"PADDING_{dim}": pad,
            f"DILATION_{dim}": spread,
            f"COMMON_{dim}": common,
            f"TAP_STEP_{dim}": tap_step,
            f"INVERSE_{dim}": pow(spread // common, -1, tap_step) if tap_step > 1 else 0,
        }
    return result


def _grid(batch: Any, channels: Any, *sizes: Any, cdiv: Any) -> tuple[Any, Any, Any]:
    *places, meta = sizes
    return (
        cdiv(batch * math.prod(places), meta["BLOCK_M"]),
        cdiv(channels // meta["GROUPS"], meta["BLOCK_N"]),
        meta["GROUPS"],
    )


def _grid_transposed(batch: Any, channels: Any, *sizes: Any, cdiv: Any) -> tuple[Any, Any, Any]:
    *places, meta = sizes
    strides = [meta[f"STRIDE_{dim}"] for dim in range(len(places))]
    of_phase = [cdiv(size, step) for size, step in zip(places, strides, strict=True)]
    return (
        cdiv(batch * math.prod(of_phase), meta["BLOCK_M"]),
        cdiv(channels // meta["GROUPS"], meta["BLOCK_N"]),
        meta["GROUPS"] * math.prod(strides),
    )


_HEAD = """\
{{def_kernel("X", "W")}}
    BATCH = {{size("X", 0)}}
    GROUP_IN = {{size("X", 1)}} // GROUPS
    GROUP_OUT = {{size(None, 1)}} // GROUPS
    stride_xn = {{stride("X", 0)}}
    stride_xc = {{stride("X", 1)}}
"""

_TAPS = """
    blocks = (GROUP_IN + BLOCK_K - 1) // BLOCK_K
    x_base = X + (group * GROUP_IN * stride_xc + idx_n * stride_xn)[:, None]
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=ACC_TYPE)
    for step in range(taps * blocks):
        channel = (step % blocks) * BLOCK_K + tl.arange(0, BLOCK_K)
        tap = step // blocks
"""

_PRODUCT = """
        x = tl.load(
            x_base + place[:, None] + (channel * stride_xc)[None, :],
            mask=inside[:, None] & (channel < GROUP_IN)[None, :],
            other=0.0,
        )
        w = tl.load(
            w_base + (channel * stride_wi)[:, None] + of_tap,
            mask=(channel < GROUP_IN)[:, None] & (idx_c < GROUP_OUT)[None, :],
            other=0.0,
        )
{% if MATRIX_UNITS %}
        acc += tl.dot(x, w, input_precision="ieee")
{% else %}
        acc += tl.sum(x.to(ACC_TYPE)[:, :, None] * w.to(ACC_TYPE)[None, :, :], 1)
{% endif %}
"""


def _source(dims: int, transposed: bool) -> str:
    every = range(dims)
    lines = [
        line
        for d in every
        for line in (
            f'IN_{d} = {{{{size("X", {d + 2})}}}}',
            f"OUT_{d} = {{{{size(None, {d + 2})}}}}",
            f'stride_x{d} = {{{{stride("X", {d + 2})}}}}',
            f'stride_w{d} = {{{{stride("W", {d + 2})}}}}',
        )
    ]
    lines += [
        f'stride_wi = {{{{stride("W", {0 if transposed else 1})}}}}',
        f'stride_wo = {{{{stride("W", {1 if transposed else 0})}}}}',
        "group = tl.program_id(2).to(INDEX_DTYPE)",
        *(_phases(dims) if transposed else [f"PLACES_{d} = OUT_{d}" for d in every]),
        "rest = tl.program_id(0).to(INDEX_DTYPE) * BLOCK_M + tl.arange(0, BLOCK_M)",
    ]
    for d in reversed(every):
        lines += [f"at_{d} = rest % PLACES_{d}", f"rest = rest // PLACES_{d}"]
    if transposed:
        lines += [f"idx_{d} = at_{d} * STRIDE_{d} + phase_{d}" for d in every]
    else:
        lines += [f"idx_{d} = at_{d}" for d in every]
    counts = [f"count_{d}" if transposed else f"KERNEL_{d}" for d in every]
    of_group = "group * GROUP_IN * stride_wi" if transposed else "group * GROUP_OUT * stride_wo"
    lines += [
        "idx_n = rest",
        "idx_c = tl.program_id(1).to(INDEX_DTYPE) * BLOCK_N + tl.arange(0, BLOCK_N)",
        f"w_base = W + ({of_group} + idx_c * stride_wo)[None, :]",
        f"taps = {' * '.join(counts)}",
    ]
    body = []
    for d in reversed(every):
        if transposed:
            body += [
                f"tap_{d} = first_{d} + (tap % {counts[d]}) * TAP_STEP_{d}",
                # Without a remainder.
                f"x_{d} = at_{d} + (phase_{d} + PADDING_{d} - tap_{d} * DILATION_{d}) "
                f"// STRIDE_{d}",
            ]
        else:
            body += [
                f"tap_{d} = tap % {counts[d]}",
                f"x_{d} = idx_{d} * STRIDE_{d} + tap_{d} * DILATION_{d} - PADDING_{d}",
            ]
        body.append(f"tap = tap // {counts[d]}")
    inside = [f"(x_{d} >= 0) & (x_{d} < IN_{d})" for d in every]
    body += [
        f"inside = (idx_n < BATCH) & {' & '.join(inside)}",
        f"place = {' + '.join(f'x_{d} * stride_x{d}' for d in every)}",
        f"of_tap = {' + '.join(f'tap_{d} * stride_w{d}' for d in every)}",
    ]
    written = " & ".join(["(idx_n < BATCH)", *(f"(idx_{d} < OUT_{d})" for d in every)])
    indices = ["idx_n[:, None]", "(idx_c + group * GROUP_OUT)[None, :]"]
    indices += [f"idx_{d}[:, None]" for d in every]
    names = [f"out_{number}" for number in range(dims + 2)]
    end = [
        f"mask = ({written})[:, None] & (idx_c < GROUP_OUT)[None, :]",
        *(f"{name} = {index}" for name, index in zip(names, indices, strict=True)),
        f'{{{{store_output({tuple(names)}, "acc", "mask", val_shape=("BLOCK_M", "BLOCK_N"))}}}}',
    ]
    return "".join(
        [_HEAD, _indented(4, lines), _TAPS, _indented(8, body), _PRODUCT, _indented(4, end)]
    )


def _phases(dims: int) -> list[str]:
    """Which phase the block computes, and the first tap of each dim that reaches it."""
    lines = ["phase = group", "group = group // (" + _times("STRIDE", dims) + ")"]
    for d in reversed(range(dims)):
        lines += [
            f"PLACES_{d} = (OUT_{d} + STRIDE_{d} - 1) // STRIDE_{d}",
            f"phase_{d} = phase % STRIDE_{d}",
            f"phase = phase // STRIDE_{d}",
            f"offset_{d} = phase_{d} + PADDING_{d}",
            # Taps t with (t * DILATION - offset) % STRIDE == 0.
            f"first_{d} = (offset_{d} // COMMON_{d} * INVERSE_{d}) % TAP_STEP_{d}",
            f"count_{d} = (KERNEL_{d} - first_{d} + TAP_STEP_{d} - 1) // TAP_STEP_{d}",
            f"count_{d} = tl.where(offset_{d} % COMMON_{d} == 0, count_{d}, 0)",
        ]
    return lines


def _times(name: str, dims: int) -> str:
    return " * ".join(f"{name}_{d}" for d in range(dims))


def _indented(spaces: int, lines: Sequence[str]) -> str:
    return textwrap.indent("\n".join(lines) + "\n", " " * spaces)
