"""The data about a model for all generated files, computed once from the manifest."""

from __future__ import annotations

import dataclasses

from aoti_driver.base.errors import DriverError
from aoti_driver.bindings import names
from aoti_driver.contract import code_parts, program_parts
from aoti_driver.contract.program_parts import Dim
from aoti_driver.contract.size_expr import SizeExpr


@dataclasses.dataclass(frozen=True)
class Spec:
    """The rule's request: the names of the generated code, and the places of files."""

    namespace: str
    class_name: str
    header: str
    py_module: str
    weights_runfile: str
    embedded: bool
    threads: int

    def __post_init__(self) -> None:
        for part in self.namespace.split("::"):
            names.check_cpp_type(part, "the C++ namespace")
        names.check_cpp_type(self.class_name, "the C++ class")
        names.check_identifier(self.py_module, "the Python module")
        if names.python_name(self.py_module) != self.py_module:
            raise DriverError(
                f'the Python module "{self.py_module}" is a keyword; rename the target'
            )


@dataclasses.dataclass(frozen=True)
class Input:
    """``sizes`` in the author's terms: a derived dim's name where it is the same size."""

    name: str
    path: str
    cpp_name: str
    py_name: str
    dtype: str
    sizes: tuple[SizeExpr, ...]
    mutated: bool
    values: tuple[int, int] | None
    # None: contiguous.
    strides: tuple[SizeExpr, ...] | None
    # For a number, the index of the dim whose value it is; otherwise -1.
    value_dim: int = -1

    @property
    def type_text(self) -> str:
        return f"{self.dtype}[{', '.join(map(str, self.sizes))}]"


@dataclasses.dataclass(frozen=True)
class Output:
    name: str
    path: str
    cpp_name: str
    py_name: str
    dtype: str
    sizes: tuple[SizeExpr, ...]

    @property
    def type_text(self) -> str:
        return f"{self.dtype}[{', '.join(map(str, self.sizes))}]"


@dataclasses.dataclass(frozen=True)
class Model:
    """variants: the highest instruction set first, the lowest one last.

    packed: the packed tensors in the weights file, which only slim reads; empty for libtorch.
    """

    spec: Spec
    name: str
    label: str
    torch_version: str
    isa: str
    device: str
    program_id: str
    dims: tuple[Dim, ...]
    inputs: tuple[Input, ...]
    outputs: tuple[Output, ...]
    weights: tuple[program_parts.Constant, ...]
    variants: tuple[code_parts.Variant, ...]
    packed: tuple[code_parts.Packed, ...]
    state: tuple[str, ...]
    guards: tuple[SizeExpr, ...] = ()

    @property
    def has_state(self) -> bool:
        return bool(self.state) or any(weight.mutated for weight in self.weights)

    @property
    def weight_indices(self) -> dict[str, int]:
        return {weight.name: i for i, weight in enumerate(self.weights)}
