"""The weights file: safetensors, laid out so that the runtime can map it and use it in place.

Layout (readable by every safetensors reader, which allows neither holes nor overlaps):

* the header is padded with spaces, so that the data begins at a multiple of 64 bytes;
* tensors whose size is a multiple of 64 bytes come first; the others follow, ordered by decreasing
  alignment of their size (the largest power of two that divides it). So every tensor of the first
  kind is aligned to 64 bytes, and every other one at least to its element size.

The same tensors, names and order give the same bytes.
"""

from __future__ import annotations

import dataclasses
import json
import os
import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import torch

from aoti_driver.base.errors import DriverError
from aoti_driver.contract import dtypes
from aoti_driver.program.safetensors_header import ALIGNMENT, aligned_order

_NAMES = {getattr(torch, name): name for name in dtypes.DTYPES}
_FROM_SAFETENSORS = {d.safetensors: getattr(torch, d.name) for d in dtypes.DTYPES.values()}


def dtype_name(dtype: torch.dtype, where: str) -> str:
    """``torch.float32`` -> ``"float32"``; raises an error that names ``where`` for an unsupported
    dtype.
    """
    if dtype not in _NAMES:
        raise DriverError(
            f"{where}: dtype {str(dtype).removeprefix('torch.')} is not supported; "
            f"supported are {', '.join(dtypes.DTYPES)}"
        )
    return _NAMES[dtype]


def torch_dtype(name: str) -> torch.dtype:
    """``"float32"`` -> ``torch.float32``."""
    dtype = getattr(torch, name)
    assert isinstance(dtype, torch.dtype)
    return dtype


@dataclasses.dataclass(frozen=True)
class Bytes:
    """A tensor of ``size`` bytes, uint8, whose parts are made when they are written."""

    size: int
    make: Callable[[], Iterable[bytes | memoryview]]


def write_weights(
    path: str | os.PathLike[str],
    tensors: Mapping[str, torch.Tensor | Bytes],
    metadata: Mapping[str, str] | None = None,
) -> None:
    """Writes contiguous ``tensors`` to a safetensors file, without copying them in memory."""
    order = aligned_order((name, _size(t)) for name, t in tensors.items())
    header: dict[str, Any] = {"__metadata__": dict(metadata)} if metadata else {}
    end = 0
    for name in order:
        t = tensors[name]
        begin, end = end, end + _size(t)
        dtype, shape = (torch.uint8, [t.size]) if isinstance(t, Bytes) else (t.dtype, list(t.shape))
        kind = dtypes.DTYPES[dtype_name(dtype, f"tensor {name!r}")].safetensors
        header[name] = {"dtype": kind, "shape": shape, "data_offsets": [begin, end]}
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-(8 + len(text)) % ALIGNMENT)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)))
        f.write(text)
        for name in order:
            t = tensors[name]
            written = sum(f.write(part) for part in _parts(t))
            if written != _size(t):
                raise AssertionError(f"{name}: wrote {written} bytes, announced {_size(t)}")


def _size(tensor: torch.Tensor | Bytes) -> int:
    return tensor.size if isinstance(tensor, Bytes) else tensor.numel() * tensor.element_size()


def _parts(tensor: torch.Tensor | Bytes) -> Iterable[bytes | memoryview]:
    return tensor.make() if isinstance(tensor, Bytes) else [raw_bytes(tensor)]


def read_weights(path: str | os.PathLike[str]) -> dict[str, torch.Tensor]:
    """Reads a safetensors file into tensors in one private (copy-on-write) mapping of it.

    Every tensor has its own storage, so that code that groups tensors by storage finds no aliasing.
    """
    path = Path(path)
    size = path.stat().st_size
    with path.open("rb") as f:
        (length,) = struct.unpack("<Q", f.read(8).ljust(8, b"\0"))
        if size < 8 or length > size - 8:
            raise DriverError(f"{path.name}: not a safetensors file (header of {length} bytes)")
        try:
            header = json.loads(f.read(length))
        except ValueError as e:
            raise DriverError(f"{path.name}: not a safetensors file: {e}") from e
    mapping: Any = torch.UntypedStorage.from_file(str(path), shared=False, nbytes=size)
    tensors = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        begin, end = (8 + length + offset for offset in entry["data_offsets"])
        if entry["dtype"] not in _FROM_SAFETENSORS:
            raise DriverError(f"{path.name}: tensor {name!r} has unknown dtype {entry['dtype']!r}")
        if end > size:
            raise DriverError(f"{path.name}: truncated: tensor {name!r} ends after the file's end")
        tensors[name] = tensor_at(
            mapping, begin, end, _FROM_SAFETENSORS[entry["dtype"]], entry["shape"]
        )
    return tensors


def tensor_at(
    storage: torch.UntypedStorage, begin: int, end: int, dtype: torch.dtype, shape: Sequence[int]
) -> torch.Tensor:
    """A contiguous tensor in a part of a storage; torch regards this part as its whole storage."""
    part: Any = storage[begin:end]
    tensor: Any = torch.empty(0, dtype=dtype)
    tensor.set_(part, 0, tuple(shape))
    return cast(torch.Tensor, tensor)


def raw_bytes(tensor: torch.Tensor) -> memoryview:
    """The memory of a contiguous tensor, without a copy; other tensors are copied."""
    flat = tensor.detach().contiguous().reshape(-1)
    array: Any = flat.view(torch.uint8).numpy()
    return memoryview(array)
