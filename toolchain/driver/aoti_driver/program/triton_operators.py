"""Operators that are written with Triton (``torch.library.triton_op``), from ``torch_triton_ops``.

Programs call them by name. Where code for a GPU is generated, Inductor takes their kernels; where
code for the CPU is, what they registered for the CPU.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch._library.custom_ops import OPDEFS
from torch._library.triton import triton_ops_to_kernels
from torch.export import ExportedProgram

from aoti_driver.base.errors import DriverError
from aoti_driver.contract.source_locations import Location, place
from aoti_driver.program import operators
from aoti_driver.program.nodes import nodes_of
from aoti_driver.torch_internals import patching


def import_modules(modules: Sequence[str], import_roots: Sequence[str]) -> None:
    """Imports the files that define the operators, by their paths below the runfiles."""
    for path in modules:
        before = set(triton_ops_to_kernels)
        new = operators.import_file(path, import_roots, "the operators of torch_triton_ops")
        if new and not set(triton_ops_to_kernels) - before:
            raise DriverError(
                f"{path.removeprefix('_main/')}: torch_triton_ops: the file defines no operator "
                "with @torch.library.triton_op. Files that only have kernels or functions belong "
                "to deps"
            )
    operators.note(triton_ops_to_kernels)


def of_program(ep: ExportedProgram) -> dict[Any, torch.fx.Node]:
    """The operators, with the first node that calls each."""
    found: dict[Any, torch.fx.Node] = {}
    for node in nodes_of(ep):
        op: Any = node.target
        if isinstance(op, torch._ops.HigherOrderOperator) and node.args:
            op = node.args[0]  # torch's wrapper of operators that write to their arguments
        if isinstance(op, torch._ops.OpOverload) and op._schema.name in triton_ops_to_kernels:
            found.setdefault(op, node)
    return found


def for_cpu(op: Any) -> Callable[..., Any] | None:
    """What the operator registered for the CPU."""
    functions: Mapping[str | None, Callable[..., Any]] = OPDEFS[op._schema.name]._backend_fns
    return functions.get("cpu")


def refuse_without_cpu(ep: ExportedProgram, locations: Mapping[str, Location], label: str) -> None:
    """Raises an error that names the operators that the CPU lacks, and the lines that call them."""
    lacking = {op: node for op, node in of_program(ep).items() if for_cpu(op) is None}
    if not lacking:
        return
    listing = "\n".join(
        f"  {op._schema.name}: {place(node.name, locations.get(node.name))}"
        for op, node in lacking.items()
    )
    example = next(iter(lacking))._schema.name.rpartition("::")[2]
    raise DriverError(
        f'{label}: devices has "cpu", and these operators are written for GPUs alone '
        f"(torch.library.triton_op):\n{listing}\n"
        "Say in the operator's file what computes it on the CPU, with PyTorch's operators: "
        f'@{example}.register_kernel("cpu"). Or compile the model for CUDA alone: '
        'device = "cuda"'
    )


@contextlib.contextmanager
def computed_for_cpu(ep: ExportedProgram) -> Iterator[None]:
    """Makes Inductor generate what the operators registered for the CPU, in place of kernels."""
    table = {op: for_cpu(op) for op in of_program(ep)}
    if not table:
        yield
        return
    with (
        patching.entries_kept("torch._inductor.decomposition:decompositions", table) as entries,
        patching.options("torch._functorch.config", {"decompose_custom_triton_ops": False}),
    ):
        entries.update(table)
        yield
