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
from aoti_driver.bindings import build_model, names, operator_cc
from aoti_driver.bindings.model import Input
from aoti_driver.bindings.operator_cc import CppClass
from aoti_driver.bindings.text import comment_text, substitute
from aoti_driver.contract import polynomials, program_parts
from aoti_driver.contract.backward_names import INPUT, OUTPUT, SAVED
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
    outputs=(@OUTPUTS@),@TRAINING@
)
"""

_TRAINING = """\
@VARIABLE@ = Training(
    forward=@VARIABLE@_FORWARD,
    backward=@VARIABLE@_BACKWARD,
    kept=(@KEPT@),
)
"""


@dataclasses.dataclass(frozen=True)
class Spec:
    """The rule's request.

    operator: PyTorch's name, ``namespace::name``.
    library: the library's Python module, as it is imported.
    training: the same of the forward and the backward pass of training, for each of the library's
      variants; empty if it is not differentiable.
    classes: the C++ classes of the library's variants.
    """

    label: str
    operator: str
    library: str
    training: tuple[tuple[str, str], ...]
    classes: tuple[CppClass, ...]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--spec", required=True, type=Path, help="JSON: what to call things")
    parser.add_argument(
        "--manifest", required=True, action="append", help="the library's; of each of its variants"
    )
    parser.add_argument(
        "--training", action="append", default=[], help="that of the forward pass of training"
    )
    parser.add_argument(
        "--backward", action="append", default=[], help="that of the backward pass of training"
    )
    parser.add_argument("--out", required=True, help="the Python module to write")
    parser.add_argument("--out_cc", required=True, help="the C++ source to write")


def run(args: argparse.Namespace) -> None:
    spec = read_spec(args.spec, Spec)
    libraries, forward, backward = (
        [read_manifest(path, LibraryManifest) for path in paths]
        for paths in (args.manifest, args.training, args.backward)
    )
    with files.outputs(args.out, args.out_cc) as (path, cc):
        text = generate(spec, libraries, list(zip(forward, backward)))
        path.write_text(text, encoding="utf-8")
        cc.write_text(operator_cc.generate(spec.label, spec.operator, libraries[0], spec.classes))


def generate(
    spec: Spec,
    libraries: Sequence[LibraryManifest],
    training: Sequence[tuple[LibraryManifest, LibraryManifest]] = (),
) -> str:
    """The module's source.

    libraries: one, or that of each variant. training: for each, the forward and the backward pass.
    """
    variables = [f"VARIANT_{i}" for i in range(len(libraries))]
    if len(libraries) > 1:
        _check_variants(spec, libraries)
    else:
        variables = ["OPERATOR"]
    operators = []
    for i, (variable, library) in enumerate(zip(variables, libraries)):
        trained = f"TRAINING_{i}" if len(libraries) > 1 else "TRAINING"
        if training:
            suffix = f"_{i}" if len(libraries) > 1 else ""
            operators += _training(trained, suffix, spec, spec.training[i], library, *training[i])
        more = f"\n    training={trained}," if training else ""
        operators.append(_operator(variable, spec.operator, spec, spec.library, library, more))
    if len(libraries) > 1:
        operators.append(f"OPERATOR = Variants(({', '.join(variables)}))\n")
    text = "\n".join(operators)
    return substitute(
        _TEMPLATE,
        {
            "LABEL": comment_text(libraries[0].program.label),
            "IMPORTS": _imports(text),
            "OPERATORS": text,
        },
    )


def _training(
    variable: str,
    suffix: str,
    spec: Spec,
    modules: tuple[str, str],
    library: LibraryManifest,
    forward: LibraryManifest,
    backward: LibraryManifest,
) -> list[str]:
    """The definitions of the two operators of a training step, and of what is between them."""
    names = [f"{spec.operator}_{part}{suffix}" for part in ("training", "backward")]
    inputs = [item.name for item in library.program.inputs]
    outputs = [item.name for item in library.program.outputs]
    kept = []
    for item in backward.program.inputs:
        if item.name.startswith(INPUT):
            kept.append(f'Kept("input", {inputs.index(item.name.removeprefix(INPUT))})')
        elif item.name.startswith(OUTPUT):
            kept.append(f'Kept("output", {outputs.index(item.name.removeprefix(OUTPUT))})')
        elif item.name.startswith(SAVED):
            index = len(outputs) + int(item.name.removeprefix(SAVED))
            kept.append(f'Kept("output", {index})')
    return [
        _operator(f"{variable}_FORWARD", names[0], spec, modules[0], forward),
        _operator(f"{variable}_BACKWARD", names[1], spec, modules[1], backward),
        substitute(_TRAINING, {"VARIABLE": variable, "KEPT": _lines(kept)}),
    ]


def _check_variants(spec: Spec, libraries: Sequence[LibraryManifest]) -> None:
    """PyTorch's operators have one schema."""
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


def _schema(library: LibraryManifest) -> str:
    """What a call passes and gets, in words."""
    inputs = [f"{item.name} ({item.number or 'tensor'})" for item in library.program.inputs]
    return f"{', '.join(inputs)} -> {len(library.program.outputs)} tensors"


def _operator(
    variable: str, name: str, spec: Spec, module: str, library: LibraryManifest, more: str = ""
) -> str:
    """more: lines of the definition."""
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
            "NAME": repr(name),
            "LABEL_STRING": repr(source.label),
            "LIBRARY": repr(module),
            "DIMS": _lines(
                f'Dim("{names.python_name(dim.name)}", {dim.min}, {dim.max})' for dim in dims
            ),
            "INPUTS": _lines(_input(item, parameters) for item in inputs),
            "OUTPUTS": _lines(_output(item, parameters) for item in source.outputs),
            "TRAINING": more,
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
        for name in ("Dim", "FloatInput", "Kept", "Size", "SizeInput", "TensorInput", "Training")
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
