"""What a generated module says of its operator, from the model's manifest."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import torch


@dataclass(frozen=True)
class Dim:
    """A dim that varies between calls; both ends of its range are included."""

    name: str
    min: int
    max: int


@dataclass(frozen=True)
class Size:
    """The size ``scale * dim + offset`` of an input; ``offset`` if ``dim`` is None."""

    scale: int
    dim: str | None
    offset: int


@dataclass(frozen=True)
class TensorInput:
    """A tensor. strides: a function of the dims; None for those of a contiguous tensor."""

    name: str
    dtype: torch.dtype
    sizes: tuple[Size, ...]
    strides: Callable[..., tuple[int, ...]] | None = None
    mutated: bool = False


@dataclass(frozen=True)
class SizeInput:
    """An int whose value is a dim; dim is None if nothing depends on it."""

    name: str
    dim: str | None
    default: int | None = None


@dataclass(frozen=True)
class FloatInput:
    """A Python float."""

    name: str
    default: float | None = None


@dataclass(frozen=True)
class Output:
    """A tensor. sizes: a function of the dims; None stands for a size that depends on data."""

    dtype: torch.dtype
    sizes: Callable[..., tuple[Any, ...]]


@dataclass(frozen=True)
class Kept:
    """A tensor that the forward pass of training keeps: of its inputs, or of its outputs."""

    of: Literal["input", "output"]
    index: int


@dataclass(frozen=True)
class Training:
    """The operators of a training step.

    forward: takes the inputs of the operator, and returns its outputs and more tensors.
    backward: takes what is kept, and the gradients of the floating-point outputs; returns the
      gradients of the floating-point inputs.
    """

    forward: Operator
    backward: Operator
    kept: tuple[Kept, ...]


@dataclass(frozen=True)
class Operator:
    """An operator.

    label: the target of its model.
    library: the Python module with the compiled model.
    training: None if there is no backward pass.
    """

    name: str
    label: str
    library: str
    dims: tuple[Dim, ...]
    inputs: tuple[TensorInput | SizeInput | FloatInput, ...]
    outputs: tuple[Output, ...]
    training: Training | None = None

    @property
    def schema(self) -> str:
        """In the language of PyTorch's schemas, without the name."""
        inputs = []
        for i, item in enumerate(self.inputs):
            if isinstance(item, TensorInput):
                alias = f"(a{i}!)" if item.mutated else ""
                inputs.append(f"Tensor{alias} {item.name}")
            else:
                kind = "SymInt" if isinstance(item, SizeInput) else "float"
                default = "" if item.default is None else f"={item.default!r}"
                inputs.append(f"{kind} {item.name}{default}")
        outputs = ["Tensor"] * len(self.outputs)
        result = outputs[0] if len(outputs) == 1 else f"({', '.join(outputs)})"
        return f"({', '.join(inputs)}) -> {result}"

    def complete(self, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
        """PyTorch leaves out the last arguments if they have their defaults."""
        missing = self.inputs[len(arguments) :]
        return arguments + tuple(getattr(item, "default", None) for item in missing)

    @property
    def mutated(self) -> tuple[str, ...]:
        """The names of the inputs that the operator writes to."""
        return tuple(
            item.name for item in self.inputs if isinstance(item, TensorInput) and item.mutated
        )

    @property
    def autocast_dtype(self) -> torch.dtype | None:
        """The dtype of all inputs that autocast may cast; None if they have several, or if the
        operator writes to one, whose copy the caller would not see.
        """
        floating = [
            item
            for item in self.inputs
            if isinstance(item, TensorInput) and item.dtype.is_floating_point
        ]
        dtypes = {item.dtype for item in floating}
        if len(dtypes) != 1 or any(item.mutated for item in floating):
            return None
        return dtypes.pop()

    @property
    def variants(self) -> tuple[Operator, ...]:
        """The programs that the operator chooses from."""
        return (self,)


@dataclass(frozen=True)
class Variants:
    """An operator of a model with several programs, which differ in the dtypes, ranks and sizes
    that they take. All have one schema; the first that takes the arguments runs.
    """

    variants: tuple[Operator, ...]

    @property
    def first(self) -> Operator:
        return self.variants[0]

    @property
    def name(self) -> str:
        return self.first.name

    @property
    def label(self) -> str:
        return self.first.label

    @property
    def library(self) -> str:
        return self.first.library

    @property
    def training(self) -> Training | None:
        return self.first.training

    @property
    def schema(self) -> str:
        return self.first.schema

    @property
    def mutated(self) -> tuple[str, ...]:
        return self.first.mutated

    def complete(self, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
        """As Operator's."""
        return self.first.complete(arguments)

    @property
    def autocast_dtype(self) -> torch.dtype | None:
        """That of all variants; None if they differ."""
        dtypes = {variant.autocast_dtype for variant in self.variants}
        return dtypes.pop() if len(dtypes) == 1 else None
