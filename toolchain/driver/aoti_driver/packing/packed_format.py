"""The format of a packed tensor in the weights file: the weight in its layout, then 64 bytes that
describe it.

    layout   followed by zeros up to a whole number of cache lines
    8 bytes  "aotipack"
    8 bytes  digest of the packed tensor's name
    8 bytes  digest of the plain tensor
    8 bytes  digest of the layout, zeros included
    32 zeros

Numbers are little-endian. ``runtime/core/packed_weight.h`` reads the format: a packed tensor whose
size or name is not the program's, or that disagrees with a plain tensor in the same file, is
refused.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from math import prod

from aoti_driver.contract.dtypes import DTYPES

# Columns of a panel: kPanel in runtime/slim/kernels/gemm.h.
PANEL = 16
# Output channels that are contiguous: kConvBlock in runtime/slim/kernels/conv.h.
CONV_BLOCK = 32

ALIGNMENT = 64
_MAGIC = b"aotipack"
_ABOUT = struct.Struct("<8sQQQ32x")
assert _ABOUT.size == ALIGNMENT

# The layouts of matrices, and the dtypes that they are for.
GEMM_DTYPES = {"gemm_f32": "float32", "gemm_bf16": "bfloat16", "gemm_f16": "float16"}
_MASK = 2**64 - 1
_PLACE, _FIRST, _SECOND = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
_CHUNK = 1 << 20  # words


def layout_size(kind: str, shape: Sequence[int], options: Mapping[str, int]) -> int:
    """Bytes of a weight of ``shape`` in the layout ``kind``, rounded up to cache lines."""
    if kind.startswith("gemm_"):
        n, k = shape[-2:][::-1] if kind.endswith("_rows") else shape[-2:]
        size = (
            prod(shape[:-2])
            * _up(n, PANEL)
            * k
            * DTYPES[GEMM_DTYPES[kind.removesuffix("_rows")]].bytes
        )
    else:
        taps, groups = prod(shape[2:]), options["groups"]
        in_pairs = kind.endswith("_bf16")
        if kind == "conv_depthwise_f32":
            inputs, outputs = shape[1], shape[0]
        elif kind in ("conv_transposed_f32", "conv_transposed_bf16"):
            inputs, outputs = shape[0], shape[1]
        elif kind in ("conv_f32", "conv_bf16"):
            inputs, outputs = shape[1] * groups, shape[0] // groups
        else:
            raise ValueError(f"no layout {kind!r}")
        inputs = _up(inputs, 2) if in_pairs else inputs
        size = taps * inputs * _up(outputs, CONV_BLOCK) * (2 if in_pairs else 4)
    return _up(size, ALIGNMENT)


def about(name: str, plain: memoryview, layout: memoryview) -> bytes:
    """The 64 bytes that follow the layout; ``layout`` includes its zeros."""
    return _ABOUT.pack(_MAGIC, digest(memoryview(name.encode())), digest(plain), digest(layout))


def renamed(name: str, stored: memoryview) -> bytes:
    """A packed tensor, with the layout and what follows it, under another name."""
    magic, _, plain, layout = _ABOUT.unpack(stored[-_ABOUT.size :])
    end = _ABOUT.pack(magic, digest(memoryview(name.encode())), plain, layout)
    return bytes(stored[: -_ABOUT.size]) + end


def digest(data: memoryview) -> int:
    """A digest that notices changed data; the same as ``Digest`` in runtime/core/digest.h."""
    import numpy as np

    whole = len(data) // 8 * 8
    words = np.frombuffer(data[:whole], np.dtype("<u8"))
    total = len(data) * _FIRST
    if whole < len(data):
        last = bytes(data[whole:]).ljust(8, b"\0")
        words = np.append(words, np.frombuffer(last, np.dtype("<u8")))
    places = np.arange(1, min(len(words), _CHUNK) + 1, dtype=np.uint64) * np.uint64(_PLACE)
    for begin in range(0, len(words), _CHUNK):
        chunk = words[begin : begin + _CHUNK]
        place = places[: len(chunk)] + np.uint64(begin * _PLACE & _MASK)
        mixed = (chunk ^ place) * np.uint64(_FIRST)
        mixed ^= mixed >> np.uint64(32)
        total += int((mixed * np.uint64(_SECOND)).sum(dtype=np.uint64))
    return total & _MASK


def _up(number: int, unit: int) -> int:
    return -(-number // unit) * unit
