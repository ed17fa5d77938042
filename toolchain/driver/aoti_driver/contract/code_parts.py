"""The parts of a manifest about generated code: the functions that it calls, and its constants."""

from __future__ import annotations

import dataclasses

from aoti_driver.contract import json_records
from aoti_driver.contract.tiles import ProductTiles


@dataclasses.dataclass(frozen=True)
class ProgramConstant:
    """A constant of the generated C++, in the order of its constants table.

    symbol: the name in the generated code. source: the name of the stored constant. shape, stride
    (elements) and storage offset are those of the view of the stored, contiguous tensor that the
    code expects.
    """

    symbol: str
    source: str
    dtype: str
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    offset: int = 0


@dataclasses.dataclass(frozen=True)
class Shim:
    """A function outside the generated code that it calls.

    name: ``aoti_torch_cpu_topk``, or ``aten::_unique2`` / ``aten::roll.overload`` for an operator
      that is called through ``aoti_torch_call_dispatcher``.
    operators: the ATen operators that call it ("aten.topk.default"); none for functions that only
      handle tensors.
    nodes: the nodes of the frozen graph for which it is called.
    dtypes: the dtypes of the tensors that it is called with and returns, with an entry for each
      different call, such as "float32,int64->float32"; none if they are not known.
    """

    name: str
    operators: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()
    dtypes: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class Packed:
    """A constant that an operator reads in another layout; the build converts the weight.

    source: the name of the stored constant. kind: the layout, see aoti_driver.packing. options:
    further parameters of the layout (the groups of a convolution). only: nothing reads the tensor
    in its stored layout.
    """

    source: str
    kind: str
    options: dict[str, int]
    only: bool

    @property
    def name(self) -> str:
        """The packed tensor's key in the weights file."""
        return f"{self.source}#{self.kind}"


@dataclasses.dataclass(frozen=True)
class CudaCode:
    """The kernels of a program for GPUs.

    archs: the architectures that they are compiled for, the lowest first, such as "sm_80".
    kernels: their number. products: those of them that compute matrix products.
    """

    archs: tuple[str, ...]
    kernels: int
    products: tuple[ProductTiles, ...] = dataclasses.field(
        default=(), metadata=json_records.OPTIONAL
    )


@dataclasses.dataclass(frozen=True)
class Codegen:
    """The code that Inductor wrote for a program, for one instruction set.

    program_id: the identifier that makes the model's C++ names unique, e.g. "models_encoder".
    device: "cpu", or "cuda" for GPUs. cuda: the kernels for these, in a library also those of its
      variant for CUDA; a document for the CPU alone lacks it.
    options: Inductor's options, as JSON texts.
    shims: the functions that the generated code calls, sorted by name.
    packed: constants that the slim runtime also reads in other layouts.
    """

    program_id: str
    device: str
    isa: str
    options: dict[str, str]
    shims: tuple[Shim, ...]
    constants: tuple[ProgramConstant, ...]
    packed: tuple[Packed, ...] = ()
    cuda: CudaCode | None = dataclasses.field(default=None, metadata=json_records.OPTIONAL)


@dataclasses.dataclass(frozen=True)
class Variant:
    """The same program for another instruction set or device: see :class:`Codegen` for the fields.

    device: a document for the CPU lacks it.
    """

    isa: str
    program_id: str
    constants: tuple[ProgramConstant, ...]
    device: str = dataclasses.field(default="cpu", metadata=json_records.OPTIONAL)
