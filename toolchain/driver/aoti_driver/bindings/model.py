"""What all generated files say about a model, worked out once from the manifest."""

from __future__ import annotations

import dataclasses
import json

from aoti_driver.base.errors import DriverError
from aoti_driver.bindings import names
from aoti_driver.contract import code_parts, program_parts
from aoti_driver.contract.program_parts import Dim
from aoti_driver.contract.size_expr import SizeExpr


@dataclasses.dataclass(frozen=True)
class Spec:
    """The rule's request: what the generated code is called, and where things lie."""

    namespace: str
    class_name: str
    header: str
    py_module: str
    weights_runfile: str
    embedded: bool
    threads: int

    @staticmethod
    def from_json(text: str) -> Spec:
        data = json.loads(text)
        fields = {field.name for field in dataclasses.fields(Spec)}
        if not isinstance(data, dict) or set(data) != fields:
            raise DriverError(
                f"bindings: the spec must have the fields {', '.join(sorted(fields))}"
            )
        spec = Spec(**data)
        for part in spec.namespace.split("::"):
            names.check_cpp_type(part, "the C++ namespace")
        names.check_cpp_type(spec.class_name, "the C++ class")
        names.check_identifier(spec.py_module, "the Python module")
        if names.python_name(spec.py_module) != spec.py_module:
            raise DriverError(
                f'the Python module "{spec.py_module}" is a keyword; rename the target'
            )
        return spec


@dataclasses.dataclass(frozen=True)
class Input:
    """``sizes`` as the author of the model says them: the name of a derived dim where one fits."""

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
    # The dim that a number's value is; -1: none.
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

    packed: what the slim runtime finds in the weights file beside the weights; empty for libtorch.
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
