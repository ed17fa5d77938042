"""The inputs of an exported program: its placeholders, and those that the caller passes."""

from __future__ import annotations

from typing import Any

from torch import fx
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind, SymIntArgument, TensorArgument


def placeholders(ep: ExportedProgram) -> dict[str, Any]:
    """The value (a fake tensor) of each of the graph's inputs."""
    return {n.name: n.meta.get("val") for n in ep.graph.nodes if n.op == "placeholder"}


def tensor_inputs(ep: ExportedProgram) -> list[str]:
    """The placeholders for what the caller passes, in order.

    These are tensors and integers that stand for sizes, which are tensors of rank 0 in the compiled
    program. Constants among the arguments are not included.
    """
    return [
        spec.arg.name
        for spec in ep.graph_signature.input_specs
        if spec.kind == InputKind.USER_INPUT
        and isinstance(spec.arg, (TensorArgument, SymIntArgument))
    ]


def written_tensors(ep: ExportedProgram) -> set[str]:
    """The names of the stored tensors that a call writes to."""
    signature = ep.graph_signature
    return {*signature.buffers_to_mutate.values(), *signature.parameters_to_mutate.values()}


def is_input(ep: ExportedProgram) -> list[bool]:
    """For each leaf of the arguments, whether it is one of :func:`tensor_inputs`."""
    return [
        isinstance(spec.arg, (TensorArgument, SymIntArgument))
        for spec in ep.graph_signature.input_specs
        if spec.kind == InputKind.USER_INPUT
    ]


def replace_node(ep: ExportedProgram, node: fx.Node, by: fx.Node) -> None:
    """Lets everything read ``by`` in place of the node, and removes the node. The program's results
    keep their places, and the signature says their new names.
    """
    node.replace_all_uses_with(by)
    rename_results(ep, node, by)
    node.graph.erase_node(node)


def rename_results(ep: ExportedProgram, old: fx.Node, new: fx.Node) -> None:
    """Says in the signature that results that were ``old`` are ``new``."""
    for spec in ep.graph_signature.output_specs:
        if spec.arg.name == old.name:
            spec.arg.name = new.name
