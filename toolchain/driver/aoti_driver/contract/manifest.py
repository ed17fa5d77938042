"""The manifest: the contract between export, codegen, bindings, runtime and tests.

It has three stages, each of which is a type of its own without optional parts. A later stage
contains the earlier one unchanged. ``manifest_file`` reads and writes them. This module needs only
the standard library, so that steps that do not need torch do not import it.
"""

from __future__ import annotations

import dataclasses
from typing import ClassVar, Literal, TypeAlias

from aoti_driver.contract import json_records
from aoti_driver.contract.code_parts import Codegen, Variant
from aoti_driver.contract.program_parts import Constant, Dim, FixedArgument, Input, Output
from aoti_driver.contract.result_tree import Result
from aoti_driver.contract.size_expr import SizeExpr

SCHEMA_VERSION = 2

ChosenShim: TypeAlias = Literal["slim", "libtorch"]


@dataclasses.dataclass(frozen=True)
class ProgramManifest:
    """An exported program; a frozen folder has this stage.

    guards: conditions that the sizes of a call must satisfy beside their ranges, for the program to
      be right.
    result: what forward() returns; None for a tensor, and for one tuple or object of tensors.
    fixed: the arguments that do not vary; a document without any lacks the field.
    precision: of the matrices of weights that are float32 in the model, and of products with them:
      float32, bfloat16 or int8; a document with float32 lacks the field.
    """

    STAGE: ClassVar[str] = "program"
    WRITER: ClassVar[str] = "torch_export or torch_import"

    label: str
    name: str
    torch_version: str
    strict: bool
    dims: tuple[Dim, ...]
    inputs: tuple[Input, ...]
    outputs: tuple[Output, ...]
    constants: tuple[Constant, ...]
    graph_sha256: str
    guards: tuple[SizeExpr, ...] = ()
    result: Result | None = None
    fixed: tuple[FixedArgument, ...] = dataclasses.field(default=(), metadata=json_records.OPTIONAL)
    precision: str = dataclasses.field(default="float32", metadata=json_records.OPTIONAL)


@dataclasses.dataclass(frozen=True)
class CodeManifest:
    """A program and its generated code for one instruction set, before a shim is chosen."""

    STAGE: ClassVar[str] = "code"
    WRITER: ClassVar[str] = "AotiCodegen"

    program: ProgramManifest
    codegen: Codegen


@dataclasses.dataclass(frozen=True)
class LibraryManifest:
    """A program in a library: its generated code, and the shim that it is linked with.

    codegen: for the lowest instruction set; its shims and packed constants include those that the
      code for the other instruction sets and devices needs.
    shim: the library with the functions that the code calls.
    variants: the code for CUDA where codegen is that for the CPU and the library is for both, and
      the code for higher instruction sets, the highest first; the runtime takes the first for the
      device that the CPU has.
    """

    STAGE: ClassVar[str] = "library"
    WRITER: ClassVar[str] = "aoti_library"

    program: ProgramManifest
    codegen: Codegen
    shim: ChosenShim
    variants: tuple[Variant, ...] = ()

    @property
    def isas(self) -> str:
        """All instruction sets, the lowest first, such as "x86-64-v3, x86-64-v4"."""
        device = self.codegen.device
        higher = [variant.isa for variant in reversed(self.variants) if variant.device == device]
        return ", ".join([self.codegen.isa, *higher])

    @property
    def devices(self) -> tuple[str, ...]:
        """Those that a loaded model may run on; the first is the default."""
        return tuple(dict.fromkeys([self.codegen.device, *(v.device for v in self.variants)]))


Manifest: TypeAlias = ProgramManifest | CodeManifest | LibraryManifest
