"""The ``operator`` subcommand: the Python module that makes a library an operator of PyTorch.

What all such modules share is in runtime/operator. It needs only the standard library.
"""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Iterable, Sequence
from pathlib import Path

from aoti_driver.base import files
from aoti_driver.base.errors import DriverError
from aoti_driver.bindings import build_model, names
from aoti_driver.bindings.model import Input
from aoti_driver.bindings.text import comment_text, substitute
from aoti_driver.contract import polynomials, program_parts
from aoti_driver.contract.manifest import LibraryManifest
from aoti_driver.contract.manifest_file import read_manifest
from aoti_driver.contract.request_spec import read_spec
from aoti_driver.contract.size_expr import (
    FUNCTIONS,
    OPERATORS,
    Name,
    Number,
    Operation,
    SizeExpr,
    python_text,
)

_TEMPLATE = """\
# Generated from @LABEL@ by rules_aoti. Do not edit.

import sys

import torch
@IMPORTS@
from aoti_operator.registration import register

@OPERATORS@
sys.modules[__name__] = register(OPERATOR)
"""

_OPERATOR = """\
@VARIABLE@ = Operator(
    name=@NAME@,
    label=@LABEL_STRING@,
    library=@LIBRARY@,
    dims=(@DIMS@),
    inputs=(@INPUTS@),
    outputs=(@OUTPUTS@),@BACKWARD@
)
"""


@dataclasses.dataclass(frozen=True)
class Spec:
    """The rule's request.

    operator: PyTorch's name, ``namespace::name``.
    library: the library's Python module, as it is imported.
    backward: the same of the backward pass; None without one.
    """

    label: str
    operator: str
    library: str
    backward: str | None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--spec", required=True, type=Path, help="JSON: what to call things")
    parser.add_argument(
        "--manifest", required=True, action="append", help="the library's; of each of its variants"
    )
    parser.add_argument("--backward", help="the manifest of the backward pass's library")
    parser.add_argument("--out", required=True, help="the Python module to write")


def run(args: argparse.Namespace) -> None:
    spec = read_spec(args.spec, Spec)
    libraries = [read_manifest(path, LibraryManifest) for path in args.manifest]
    backward = read_manifest(args.backward, LibraryManifest) if args.backward else None
    with files.outputs(args.out) as (path,):
        path.write_text(generate(spec, libraries, backward), encoding="utf-8")


def generate(
    spec: Spec, libraries: Sequence[LibraryManifest], backward: LibraryManifest | None = None
) -> str:
    """The module's source; libraries: one, or that of each variant."""
    library = libraries[0]
    if len(libraries) > 1:
        operators = _variants(spec, libraries)
    else:
        operators = [_operator("OPERATOR", spec, library, backward is not None)]
    if backward is not None:
        assert spec.backward is not None
        name = f"{spec.operator}_backward"
        of_backward = Spec(spec.label, name, spec.backward, None)
        operators.insert(0, _operator("BACKWARD", of_backward, backward))
    text = "\n".join(operators)
    return substitute(
        _TEMPLATE,
        {
            "LABEL": comment_text(library.program.label),
            "IMPORTS": _imports(text),
            "OPERATORS": text,
        },
    )


def _variants(spec: Spec, libraries: Sequence[LibraryManifest]) -> list[str]:
    """The definitions of the variants, and of the operator that chooses."""
    values = [{fixed.name: fixed.value for fixed in one.program.fixed} for one in libraries]
    for library, fixed in zip(libraries, values):
        where = f"{spec.label}: {library.program.label}"
        for name, value in fixed.items():
            if any(other.get(name) != value for other in values):
                raise DriverError(
                    f'{where} is chosen by the value of "{name}", but an operator takes tensors '
                    "and numbers. Make an operator for each value, of a model with this value alone"
                )
        if _schema(library) != _schema(libraries[0]):
            raise DriverError(
                f"{where} takes and returns {_schema(library)}, and {libraries[0].program.label} "
                f"{_schema(libraries[0])}: the variants of an operator have one schema"
            )
    variables = [f"VARIANT_{i}" for i in range(len(libraries))]
    texts = [_operator(name, spec, library) for name, library in zip(variables, libraries)]
    return [*texts, f"OPERATOR = Variants(({', '.join(variables)}))\n"]


def _schema(library: LibraryManifest) -> str:
    """What a call passes and gets, in words."""
    inputs = [f"{item.name} ({item.number or 'tensor'})" for item in library.program.inputs]
    return f"{', '.join(inputs)} -> {len(library.program.outputs)} tensors"


def _operator(
    variable: str, spec: Spec, library: LibraryManifest, differentiable: bool = False
) -> str:
    source = library.program
    _check_stateless(spec, library)
    _check_sizes(spec, library)
    inputs = build_model.inputs_of(source)
    names.check_unique([(i.tensor.name, i.py_name) for i in inputs], f"{spec.label}: inputs")
    dims = [dim for dim in source.dims if dim.alias is None]
    parameters = ", ".join(names.python_name(dim.name) for dim in dims)
    return substitute(
        _OPERATOR,
        {
            "VARIABLE": variable,
            "NAME": repr(spec.operator),
            "LABEL_STRING": repr(source.label),
            "LIBRARY": repr(spec.library),
            "DIMS": _lines(
                f'Dim("{names.python_name(dim.name)}", {dim.min}, {dim.max})' for dim in dims
            ),
            "INPUTS": _lines(_input(item, parameters) for item in inputs),
            "OUTPUTS": _lines(_output(item, parameters) for item in source.outputs),
            "BACKWARD": "\n    backward=BACKWARD," if differentiable else "",
        },
    )


def _check_stateless(spec: Spec, library: LibraryManifest) -> None:
    """PyTorch may call an operator twice for one result, or in another order."""
    source = library.program
    written = [constant.name for constant in source.constants if constant.mutated]
    if written:
        raise DriverError(
            f'{spec.label}: {source.label} writes to its buffer "{written[0]}", but an operator '
            "keeps nothing between calls. Make the buffer an argument of forward(), and write to "
            "that"
        )


def _check_sizes(spec: Spec, library: LibraryManifest) -> None:
    for item in library.program.inputs:
        for size in filter(polynomials.computed, item.shape):
            raise DriverError(
                f'{spec.label}: input "{item.name}" of {library.program.label} has the size '
                f'"{size}", but each size of an operator\'s input has one dim at most, without a '
                "division. Give this size a dim of its own in dynamic_dims"
            )


def _imports(body: str) -> str:
    used = [
        name
        for name in ("Dim", "FloatInput", "Size", "SizeInput", "TensorInput")
        if f"{name}(" in body
    ]
    used += ["Operator", *(["Output"] if "Output(" in body else [])]
    used += ["Variants"] if "Variants(" in body else []
    lines = [f"from aoti_operator.declaration import {', '.join(sorted(used))}"]
    if "sizes." in body:
        lines.insert(0, "from aoti_operator import sizes")
    return "\n".join(lines)


def _lines(items: Iterable[str]) -> str:
    text = "".join(f"\n        {item}," for item in items)
    return f"{text}\n    " if text else ""


def _input(item: Input, parameters: str) -> str:
    tensor = item.tensor
    default = "" if item.default is None else f", default={item.default_text}"
    if tensor.number == "float":
        return f'FloatInput("{item.py_name}"{default})'
    if tensor.number == "int" or tensor.value is not None:
        dim = tensor.value and names.python_name(tensor.value)
        return f'SizeInput("{item.py_name}", {dim!r}{default})'
    sizes = _tuple(_affine(size) for size in tensor.shape)
    text = f'"{item.py_name}", torch.{tensor.dtype}, {sizes}'
    if item.strides is not None:
        text += f", strides={_function(parameters, item.strides)}"
    return f"TensorInput({text}{', mutated=True' if tensor.mutated else ''})"


def _affine(size: SizeExpr) -> str:
    scale, dim, offset = polynomials.affine(size)
    return f"Size({scale}, {dim and names.python_name(dim)!r}, {offset})"


def _output(item: program_parts.Output, parameters: str) -> str:
    return f"Output(torch.{item.dtype}, {_function(parameters, item.shape)})"


def _function(parameters: str, sizes: Iterable[SizeExpr]) -> str:
    parameter_list = f" {parameters}" if parameters else ""
    return f"lambda{parameter_list}: {_tuple(map(size_code, sizes))}"


def _tuple(items: Iterable[str]) -> str:
    texts = list(items)
    return f"({texts[0]},)" if len(texts) == 1 else f"({', '.join(texts)})"


def size_code(size: SizeExpr) -> str:
    """Python code; None for a size that depends on data, or that only torch can compute."""
    code = _in_python(size)
    return "None" if code is None else python_text(code)


def _in_python(size: SizeExpr) -> SizeExpr | None:
    match size:
        case Number():
            return size
        case Name(name):
            return Name(names.python_name(name))
        case Operation(operator, operands) if operator in OPERATORS:
            parts = [_in_python(operand) for operand in operands]
            known = tuple(part for part in parts if part is not None)
            if len(known) < len(parts):
                return None
            special = operator in FUNCTIONS or operator in ("max", "min")
            return Operation(f"sizes.{operator}" if special else operator, known)
    return None
