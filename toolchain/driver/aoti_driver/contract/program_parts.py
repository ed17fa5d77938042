"""The parts of a manifest about an exported program: its dims, inputs, outputs and constants.

Symbolic extents are affine in one dim: ``scale * dim + offset`` (see :class:`Extent`); torch.export
admits nothing else for inputs. Output extents may be any expression; :class:`Output` keeps them as
text.
"""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True)
class Extent:
    """The size of one dimension: ``scale * dim + offset``; ``dim`` is None for a static size.

    A static size ``n`` is ``Extent(scale=0, dim=None, offset=n)``.
    """

    scale: int
    dim: str | None
    offset: int

    def __str__(self) -> str:
        if self.dim is None:
            return str(self.offset)
        text = self.dim if self.scale == 1 else f"{self.scale}*{self.dim}"
        if self.offset > 0:
            return f"{text} + {self.offset}"
        return f"{text} - {-self.offset}" if self.offset < 0 else text

    def evaluate(self, dims: dict[str, int]) -> int:
        """The size for the given values of the dims."""
        return self.offset if self.dim is None else self.scale * dims[self.dim] + self.offset


@dataclasses.dataclass(frozen=True)
class Dim:
    """A dynamic dim: a free one has a range (both ends included), a derived one also its extent.

    ``alias`` is set for a derived dim such as ``seq = 2*half``: its extent in a free dim. The
    dims in ``Extent.dim`` of inputs and outputs are always free ones.
    """

    name: str
    min: int
    max: int
    alias: Extent | None = None


@dataclasses.dataclass(frozen=True)
class Input:
    """One tensor that the caller passes, in the order in which the compiled program takes them.

    name: an identifier, unique in the model ("tokens", "past_key_values_0"); ``path`` is the
      place in forward()'s arguments as pytree text ("tokens", "past_key_values[0]").
    stride: in elements, one entry per dimension; the program was compiled for exactly these (an
      entry is an expression in the dims, e.g. "seq" or "64*seq" or "1").
    mutated: the program writes to it in place; the caller's memory then has the new value.
    values: the values that a call may pass (lowest, highest, both included): the range in the spec,
      cut to the size of the table that the input indexes; None if neither is known.
    value: for a number that the program uses as a size (``x[:n]``): the dim whose value it is.
    """

    name: str
    path: str
    dtype: str
    shape: tuple[Extent, ...]
    stride: tuple[str, ...]
    mutated: bool = False
    values: tuple[float, float] | None = None
    value: str | None = None


@dataclasses.dataclass(frozen=True)
class Output:
    """One tensor that the program returns, in order. ``shape``: expressions in the free dims."""

    name: str
    path: str
    dtype: str
    shape: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class Constant:
    """A parameter, buffer or constant tensor of the program, stored in the weights file.

    name: its key in the safetensors file (the fully qualified name; for tied tensors the first
      one's, by the program's order). Every key is stored contiguous.
    mutated: a buffer that the program writes to: each loaded model owns a writable copy.
    """

    name: str
    kind: str  # "parameter", "buffer" or "constant"
    dtype: str
    shape: tuple[int, ...]
    mutated: bool = False
