"""The tensors of a model of several methods. Each is a program; all read one weights file.

This module needs only the standard library.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping

from aoti_driver.base.errors import DriverError
from aoti_driver.contract.code_parts import Packed
from aoti_driver.contract.manifest import LibraryManifest
from aoti_driver.contract.program_parts import Constant

# torch numbers the tensors that a program makes in its code, from 0 in each program.
_NUMBERED = re.compile(r"(.*\.)?_?lifted_tensor_(constant)?\d+$")


@dataclasses.dataclass(frozen=True)
class SharedTensors:
    """What the weights file has: constants by name, and packed copies of them."""

    constants: tuple[Constant, ...]
    packed: tuple[Packed, ...]


def shared_name(method: str, name: str) -> str:
    """The name in the shared file: names that torch made up are of one program alone."""
    return f"{method}/{name}" if _NUMBERED.match(name) else name


def of_method(method: str, library: LibraryManifest) -> LibraryManifest:
    """The manifest with the names of the shared file."""

    def name(source: str) -> str:
        return shared_name(method, source)

    codegen = library.codegen
    return dataclasses.replace(
        library,
        program=dataclasses.replace(
            library.program,
            constants=tuple(
                dataclasses.replace(c, name=name(c.name)) for c in library.program.constants
            ),
        ),
        codegen=dataclasses.replace(
            codegen,
            constants=tuple(
                dataclasses.replace(c, source=name(c.source)) for c in codegen.constants
            ),
            packed=tuple(dataclasses.replace(p, source=name(p.source)) for p in codegen.packed),
        ),
        variants=tuple(
            dataclasses.replace(
                variant,
                constants=tuple(
                    dataclasses.replace(c, source=name(c.source)) for c in variant.constants
                ),
            )
            for variant in library.variants
        ),
    )


def merge(label: str, libraries: Mapping[str, LibraryManifest]) -> SharedTensors:
    """What the methods' programs read together, in the order in which they name it.

    libraries: by method, each as of_method() returned it.
    """
    constants: dict[str, Constant] = {}
    owner: dict[str, str] = {}
    for method, library in libraries.items():
        for constant in library.program.constants:
            known = constants.setdefault(constant.name, constant)
            first = owner.setdefault(constant.name, method)
            if (known.dtype, known.shape) != (constant.dtype, constant.shape):
                raise DriverError(
                    f'{label}: "{constant.name}" is {_type(known)} in {first} '
                    f"({libraries[first].program.label}), and {_type(constant)} in {method} "
                    f"({library.program.label}). Methods share tensors by name: export both from "
                    "the same module, or rename one of them."
                )
            if constant.mutated:
                constants[constant.name] = dataclasses.replace(known, mutated=True)
    return SharedTensors(tuple(constants.values()), _packed(label, libraries, constants))


def _packed(
    label: str, libraries: Mapping[str, LibraryManifest], constants: Mapping[str, Constant]
) -> tuple[Packed, ...]:
    """Packed copies. The plain tensor may be left out if no method reads it."""
    found: dict[tuple[str, str], Packed] = {}
    plain: set[str] = set()
    for method, library in libraries.items():
        packed = library.codegen.packed if library.shim == "slim" else ()
        alone = {p.source for p in packed if p.only}
        plain |= {c.name for c in library.program.constants} - alone
        for item in packed:
            if constants[item.source].mutated:
                raise DriverError(
                    f'{label}: {method} ({library.program.label}) reads "{item.source}" in a '
                    "layout that the build makes, and another method writes to it: give the model "
                    "of this method a copy of the tensor"
                )
            known = found.setdefault((item.source, item.kind), item)
            if known.options != item.options:
                raise DriverError(
                    f'{label}: methods read "{item.source}" in two layouts of the kind {item.kind}'
                )
    return tuple(dataclasses.replace(p, only=p.source not in plain) for p in found.values())


def _type(constant: Constant) -> str:
    return f"{constant.dtype}{list(constant.shape)}"
