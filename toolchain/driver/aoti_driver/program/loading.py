"""Loads a frozen program, with its weights or without."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import sympy
import torch
from torch._export.serde import serialize
from torch.export import ExportedProgram
from torch.utils import _pytree as pytree

from aoti_driver.base.errors import DriverError
from aoti_driver.contract.manifest import ProgramManifest
from aoti_driver.program import objects, operators, storage
from aoti_driver.program.graph_file import read_document
from aoti_driver.program.no_code import no_code
from aoti_driver.program.schema_reader import read_program
from aoti_driver.program.weights_file import torch_dtype


def load_program(
    graph_path: str | os.PathLike[str],
    manifest: ProgramManifest | None = None,
    weights: Mapping[str, torch.Tensor] | None = None,
    *,
    flat: bool = False,
    change: Callable[[dict[str, Any]], None] | None = None,
) -> ExportedProgram:
    """Loads what ``graph_file.save_graph`` wrote.

    weights: the stored tensors (``weights_file.read_weights``), used in place; None for zeros,
    which use no memory. manifest: names the program in errors. flat: replace the pytree structure
    of inputs and outputs by tuples of leaves, so that types which user code registers are not
    needed. change: changes the document of the program before it becomes a graph.
    """
    who = manifest.label if manifest else Path(graph_path).name
    document = read_document(graph_path, who, manifest)
    tensors = storage.make_tensors(document, weights, who)
    program = document["program"]
    if flat:
        _flatten_specs(program)
    operators.declare(document.get("operators", []))
    objects.declare(document.get("objects", []))
    if change is not None:
        change(program)
    parsed = read_program(program)
    try:
        with no_code(f"{who}: the graph can't be loaded"):
            examples = make_example_inputs(document["example_inputs"], in_spec(program, who))
            ep = serialize.ExportedProgramDeserializer().deserialize(
                parsed,
                {name: tensors[name] for name in document["state_dict"]},
                {name: tensors[name] for name in document["constants"]},
                examples,
            )
    except serialize.SerializeError as e:
        raise DriverError(f"{who}: the graph can't be loaded: {_cannot_load(str(e))}") from e
    _complete_hints(ep)
    return ep


def _cannot_load(error: str) -> str:
    """The informative line of torch's message, with the operator's name."""
    if unknown := re.search(r"failed to resolve torch\.ops\.(\S+) to an operator", error):
        return (
            f'it calls the operator "{unknown[1]}", which is not PyTorch\'s own. Compiled code '
            "can't call it: write the model with PyTorch's operators, or give the operator to "
            "custom_ops, and export it again."
        )
    operator = re.search(r"target='torch\.ops\.([\w.]+)'", error)
    lines = [line for line in error.strip().splitlines() if line and not line.startswith(" ")]
    return (f'its operator "{operator[1]}": ' if operator else "") + lines[-1]


def _flatten_specs(program: Any) -> None:
    signature = program["graph_module"]["module_call_graph"][0]["signature"]
    leaf: Any = {"type": None, "context": None, "children_spec": []}

    def spec(kind: str, context: str, children: list[Any]) -> Any:
        return {"type": kind, "context": context, "children_spec": children}

    specs = program["graph_module"]["signature"]
    inputs = sum("user_input" in s or "constant_input" in s for s in specs["input_specs"])
    outputs = sum("user_output" in s for s in specs["output_specs"])
    args = spec("builtins.tuple", "null", [leaf] * inputs)
    kwargs = spec("builtins.dict", "[]", [])
    signature["in_spec"] = json.dumps([1, spec("builtins.tuple", "null", [args, kwargs])])
    signature["out_spec"] = json.dumps([1, spec("builtins.tuple", "null", [leaf] * outputs)])
    signature["forward_arg_names"] = None
    # They name the arguments, which have no names any more. The manifest has these guards.
    program["guards_code"] = []
    # The signatures of submodules may also name unknown types, and nothing here needs them.
    program["graph_module"]["module_call_graph"] = program["graph_module"]["module_call_graph"][:1]


def in_spec(program: Any, who: str) -> pytree.TreeSpec:
    text = program["graph_module"]["module_call_graph"][0]["signature"]["in_spec"]
    try:
        with no_code(f"{who}: the graph can't be loaded"):
            return pytree.treespec_loads(text)
    except NotImplementedError as e:
        raise DriverError(
            f"{who}: the program's inputs hold a type that is not registered with "
            f"torch.utils._pytree here: {e}"
        ) from e


def make_example_inputs(leaves: list[Any] | None, in_spec: pytree.TreeSpec) -> Any:
    if leaves is None:
        return None
    values = []
    for leaf in leaves:
        if "tensor" in leaf:
            t = leaf["tensor"]
            size, stride, dtype = t["shape"], t["stride"], torch_dtype(t["dtype"])
            values.append(torch.empty_strided(size, stride, dtype=dtype).zero_())
        else:
            values.append(leaf["value"])
    return pytree.tree_unflatten(values, in_spec)


def _complete_hints(ep: ExportedProgram) -> None:
    """Gives every symbol the size that it had in the sample inputs.

    torch restores the hint of ``2*half``, but not that of ``half`` if it only occurs in
    expressions.
    """
    for node in ep.graph.find_nodes(op="placeholder"):
        value = node.meta.get("val")
        for size in value.shape if isinstance(value, torch.Tensor) else ():
            if isinstance(size, torch.SymInt):
                hints = size.node.shape_env.backed_var_to_val
                for symbol in size.node.expr.free_symbols - hints.keys():
                    if size.node.expr in hints and len(size.node.expr.free_symbols) == 1:
                        (hint,) = sympy.solve(size.node.expr - hints[size.node.expr], symbol)
                        hints[symbol] = sympy.Integer(hint)
