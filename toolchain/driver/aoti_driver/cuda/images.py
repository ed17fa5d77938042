"""The compiled kernels of a program: one file with all images, and the table of them in C++.

runtime/cuda/kernel_table.h describes the table.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

_ALIGNMENT = 16


@dataclasses.dataclass(frozen=True)
class Image:
    """One compiled form of a kernel. arch: 80 for sm_80. data: a cubin, or the text of PTX."""

    arch: int
    is_ptx: bool
    data: bytes
    shared_bytes: int
    threads: int


@dataclasses.dataclass(frozen=True)
class Kernel:
    """symbol: the function's name in the images. reports_indices: whether it has the parameter for
    indices out of range.
    """

    symbol: str
    images: tuple[Image, ...]
    reports_indices: bool = False


def write(kernels: Sequence[Kernel], program_id: str) -> tuple[bytes, str]:
    """The bytes of the file, and C++ that defines ``kKernelTable``.

    Equal images are stored once. The file is never empty.
    """
    data = bytearray()
    places: dict[bytes, int] = {}
    lines: list[str] = []
    for number, kernel in enumerate(kernels):
        lines.append(f"constexpr ::aoti::cuda::KernelImage kImages{number}[] = {{")
        for image in kernel.images:
            content = image.data + (b"\0" if image.is_ptx else b"")
            if content not in places:
                data += bytes(-len(data) % _ALIGNMENT)
                places[content] = len(data)
                data += content
            lines.append(
                f"    {{{image.arch}, {str(image.is_ptx).lower()}, {places[content]}, "
                f"{len(content)}, {image.shared_bytes}, {image.threads}}},"
            )
        lines.append("};")
    lines.append("constexpr ::aoti::cuda::Kernel kKernels[] = {")
    lines += [
        f'    {{"{kernel.symbol}", kImages{number}, {len(kernel.images)}}},'
        for number, kernel in enumerate(kernels)
    ] or ["    {},"]
    lines.append("};")
    images = f"aoti_cuda_images_{program_id}"
    text = _TABLE.format(
        images=images,
        tables="\n".join(lines),
        count=len(kernels),
        reports=str(any(kernel.reports_indices for kernel in kernels)).lower(),
    )
    return bytes(data) or bytes(_ALIGNMENT), text


_TABLE = """\
#include "runtime/cuda/kernel_table.h"

extern "C" __attribute__((visibility("hidden"))) const unsigned char {images}[];

namespace {{
{tables}
constexpr ::aoti::cuda::KernelTable kKernelTable = {{{images}, kKernels, {count}, {reports}}};
}}  // namespace
"""
