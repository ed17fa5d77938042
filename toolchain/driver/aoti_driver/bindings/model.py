"""The data about a model for all generated files, computed once from the manifest."""

from __future__ import annotations

import dataclasses
import hashlib

from aoti_driver.base.errors import DriverError
from aoti_driver.bindings import names
from aoti_driver.contract import code_parts, polynomials, program_parts
from aoti_driver.contract.dtypes import DTYPES
from aoti_driver.contract.manifest import LibraryManifest, ProgramManifest
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
    """An input as the manifest describes it, and what generated code has beside that.

    sizes: in the author's terms: a derived dim's name where it is the same size.
    strides: None for those of a contiguous tensor.
    value_dim: the index of the dim that a number's value is; -1 for none.
    default: a number's, which a call may leave out.
    """

    tensor: program_parts.Input
    sizes: tuple[SizeExpr, ...]
    strides: tuple[SizeExpr, ...] | None
    value_dim: int
    default: float | None = None

    @property
    def cpp_name(self) -> str:
        return names.cpp_name(self.tensor.name)

    @property
    def py_name(self) -> str:
        return names.python_name(self.tensor.name)

    @property
    def type_text(self) -> str:
        return self.tensor.number or f"{self.tensor.dtype}[{', '.join(map(str, self.sizes))}]"

    @property
    def default_text(self) -> str | None:
        """The default as C++ and Python write it."""
        if self.default is None:
            return None
        return repr(float(self.default) if self.tensor.number == "float" else int(self.default))

    @property
    def float_limits(self) -> tuple[float, float] | None:
        """The declared range of a Python float, which calls are checked for."""
        if self.tensor.number != "float" or self.tensor.values is None:
            return None
        low, high = self.tensor.values
        return float(low), float(high)

    @property
    def checked_values(self) -> tuple[int, int] | None:
        """The declared range of an integer input; a range of floats is only for samples."""
        if self.tensor.values is None or not DTYPES[self.tensor.dtype].integer:
            return None
        low, high = self.tensor.values
        return int(low), int(high)


@dataclasses.dataclass(frozen=True)
class Output:
    """An output as the manifest describes it, and its names in generated code."""

    tensor: program_parts.Output

    @property
    def sizes(self) -> tuple[SizeExpr, ...]:
        return self.tensor.shape

    @property
    def cpp_name(self) -> str:
        return names.cpp_name(self.tensor.name)

    @property
    def py_name(self) -> str:
        return names.python_field(self.tensor.name)

    @property
    def type_text(self) -> str:
        return self.tensor.number or f"{self.tensor.dtype}[{', '.join(map(str, self.sizes))}]"


@dataclasses.dataclass(frozen=True)
class Space:
    """Attributes of a method or of a variant, as the BUILD file has them.

    inputs: the alternatives of each.
    """

    inputs: dict[str, tuple[str, ...]]
    dynamic_dims: dict[str, str]


@dataclasses.dataclass(frozen=True)
class MethodsSpec:
    """The rule's request for a model of several programs.

    methods: the method of each program, by its name in Python, and after a ``.`` the variant:
      ``decode``, ``decode.one``. single: whether the only method is what a call of the model calls.
    spaces: of methods with variants what calls may pass, and of each variant what it takes; without
      them, nothing is known of the calls that no variant takes.
    """

    label: str
    program_id: str
    methods: tuple[str, ...]
    names: Spec
    single: bool = False
    spaces: dict[str, Space] = dataclasses.field(default_factory=dict)

    def shown(self, method: str, variant: str = "") -> str:
        """What the errors of a method, or of one of its variants, begin with."""
        parts = [self.names.py_module, "" if self.single else method, variant]
        return ".".join(part for part in parts if part)


@dataclasses.dataclass(frozen=True)
class Model:
    """A library as its manifest describes it, and what generated code has beside that.

    dims: with ranges that fit into 64 bits.
    weights: the program's constants.
    packed: what the slim runtime finds in the weights file beside them; no other reads it.
    """

    spec: Spec
    library: LibraryManifest
    dims: tuple[Dim, ...]
    inputs: tuple[Input, ...]
    outputs: tuple[Output, ...]
    weights: tuple[program_parts.Constant, ...]
    packed: tuple[code_parts.Packed, ...]

    @property
    def program(self) -> ProgramManifest:
        return self.library.program

    @property
    def program_id(self) -> str:
        return self.library.codegen.program_id

    @property
    def variants(self) -> tuple[code_parts.Variant, ...]:
        """The highest instruction set first, the lowest one last; the code for CUDA before them."""
        lowest = self.library.codegen
        variant = code_parts.Variant(lowest.isa, lowest.program_id, lowest.constants, lowest.device)
        return (*self.library.variants, variant)

    @property
    def computes_sizes(self) -> bool:
        """Whether the generated code has conditions on sizes, or sizes that follow from others."""
        sizes = [size for i in self.program.inputs for size in (*i.shape, *i.stride)]
        return bool(self.program.guards) or any(map(polynomials.computed, sizes))

    @property
    def has_state(self) -> bool:
        return any(weight.mutated for weight in self.weights)

    @property
    def on_cuda(self) -> bool:
        """Whether the program may run on a GPU."""
        return "cuda" in self.library.devices

    @property
    def weight_indices(self) -> dict[str, int]:
        return {weight.name: i for i, weight in enumerate(self.weights)}


@dataclasses.dataclass(frozen=True)
class Method:
    """A program of a model, whose tables of weights and packed weights are those of all methods.

    name: the method's. packed: the names of the packed weights that this one reads. variant: its
    name, if it is one of several programs of the method.
    """

    name: str
    model: Model
    packed: frozenset[str]
    variant: str = ""

    @property
    def key(self) -> str:
        """An identifier that no other program of the model has: no name has two ``_``."""
        return f"{self.name}__{self.variant}" if self.variant else self.name

    @property
    def cpp_name(self) -> str:
        """``decode_step`` -> ``DecodeStep``."""
        return "".join(word[:1].upper() + word[1:] for word in self.name.split("_"))

    @property
    def outputs_class(self) -> str:
        """The named tuple that it returns in Python; the struct has the same name in C++."""
        return f"{self.cpp_name}Outputs"


@dataclasses.dataclass(frozen=True)
class Methods:
    """A model of several methods."""

    spec: MethodsSpec
    methods: tuple[Method, ...]

    @property
    def digest(self) -> str:
        """Of the graphs of all methods, which one weights file is for."""
        graphs = {method.model.program.graph_sha256 for method in self.methods}
        return hashlib.sha256("\n".join(sorted(graphs)).encode()).hexdigest()

    @property
    def any(self) -> Model:
        """One of the methods, for what they have in common."""
        return self.methods[0].model
