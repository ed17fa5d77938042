"""A frozen program on disk: ``graph.json`` (no weights, no data about the host) and a weights file.

``graph.json`` has torch's serialized ExportedProgram, without stack traces, and a table of the
program's tensors, which says for each parameter, buffer or constant which stored tensor it is a
view of. The stored tensors are the keys of the weights file. Tied parameters share a stored tensor;
views of one storage are views of one stored tensor. The program can be loaded without weights too
(for codegen): then all tensors are in one anonymous, untouched mapping of zeros, with the same
aliasing.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch._export.serde import serialize
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind
from torch.utils import _pytree as pytree

from aoti_driver.base.errors import DriverError
from aoti_driver.contract.manifest import ProgramManifest
from aoti_driver.contract.program_parts import Constant
from aoti_driver.contract.torch_version import public_version
from aoti_driver.program import objects, operators, storage
from aoti_driver.program.aliasing import mutated_inputs
from aoti_driver.program.weights_file import dtype_name
from aoti_driver.torch_internals import patching

_FORMAT = 1
# The metadata of nodes that is kept: none of it depends on where the source is on this machine.
_KEPT_METADATA = ("nn_module_stack", "torch_fn", "source_fn_stack")


def save_graph(ep: ExportedProgram, path: str | os.PathLike[str]) -> None:
    """Writes ``ep`` without its weights. The bytes depend on the program alone."""
    layout = storage.layout(ep)
    try:
        unused = {
            "torch._export.serde.serialize:canonicalize": lambda program, constants: program,
            "torch.fx.graph_module:GraphModule.print_readable": lambda module, print_output: "",
        }
        with _plain_results(ep), patching.replaced(unused):
            artifact = serialize.serialize(
                ep,
                serialize_state_dict=False,
                serialize_constants=False,
                serialize_example_inputs=False,
            )
    except (serialize.SerializeError, NotImplementedError) as e:
        raise DriverError(_cannot_serialize(e)) from e
    program = json.loads(artifact.exported_program)
    _strip(program)
    # torch's CPU build (2.13.0+cpu) and its CUDA build (+cu130) export the same program.
    program["torch_version"] = public_version(torch.__version__)
    document = {
        "format": _FORMAT,
        "program": program,
        "state_dict": list(ep.state_dict),
        "constants": list(ep.constants),
        "tensors": {name: dataclasses.asdict(view) for name, view in layout.views.items()},
        "stored": {
            name: {"dtype": dtype_name(t.dtype, name), "shape": list(t.shape)}
            for name, t in layout.stored.items()
        },
        "example_inputs": _describe_example_inputs(ep),
    }
    if schemas := operators.schemas(ep):
        document["operators"] = schemas
    if found := objects.to_json(ep):
        document["objects"] = found
    text = json.dumps(document, sort_keys=True, separators=(",", ":"), allow_nan=False)
    Path(path).write_text(text + "\n", encoding="utf-8")


@contextlib.contextmanager
def _plain_results(ep: ExportedProgram) -> Iterator[None]:
    """Replaces the types of results like torch.topk's, which torch can't serialize, by plain
    tuples.
    """
    signatures = [entry.signature for entry in ep.module_call_graph if entry.signature is not None]
    before = [signature.out_spec for signature in signatures]
    for signature in signatures:
        signature.out_spec = _without_named_results(signature.out_spec)
    try:
        yield
    finally:
        for signature, spec in zip(signatures, before, strict=True):
            signature.out_spec = spec


def _without_named_results(spec: pytree.TreeSpec) -> pytree.TreeSpec:
    children = [_without_named_results(child) for child in spec.children()]
    if getattr(spec.type, "__module__", None) == "torch.return_types":
        return pytree.TreeSpec(tuple, None, children)
    return spec if spec.is_leaf() else pytree.TreeSpec(spec.type, spec.context, children)


def _cannot_serialize(error: Exception) -> str:
    operator = re.search(r"Failed serializing node (\S+) ", str(error))
    what = f'the operator "{operator[1]}"' if operator else "the exported program"
    reason = str(error).strip().splitlines()[-1]
    return f"torch {torch.__version__} can't write {what} to a file: {reason}"


def stored_tensors(ep: ExportedProgram) -> dict[str, torch.Tensor]:
    """The tensors of the weights file: contiguous, tied tensors once, in program order."""
    return storage.layout(ep).stored


def constants(ep: ExportedProgram) -> tuple[Constant, ...]:
    """The manifest's description of :func:`stored_tensors`, in the same order."""
    layout = storage.layout(ep)
    written = mutated_inputs(ep)
    kinds: dict[str, str] = {}
    mutated = set()
    for spec in ep.graph_signature.input_specs:
        if spec.target is not None and spec.target in layout.views:
            stored = layout.views[spec.target].stored
            kinds.setdefault(stored, _KINDS.get(spec.kind, "constant"))
            if spec.arg.name in written:
                mutated.add(stored)
    return tuple(
        Constant(
            name=name,
            kind=kinds.get(name, _unused_kind(ep, name)),
            dtype=dtype_name(tensor.dtype, name),
            shape=tuple(tensor.shape),
            mutated=name in mutated,
        )
        for name, tensor in layout.stored.items()
    )


_KINDS = {InputKind.PARAMETER: "parameter", InputKind.BUFFER: "buffer"}


def _unused_kind(ep: ExportedProgram, name: str) -> str:
    if isinstance(ep.state_dict.get(name), torch.nn.Parameter):
        return "parameter"
    return "buffer" if name in ep.state_dict else "constant"


def call_spec(graph_path: str | os.PathLike[str]) -> tuple[str, str]:
    """The program's (in_spec, out_spec) as torch writes pytree specs."""
    document = json.loads(Path(graph_path).read_text(encoding="utf-8"))
    signature = document["program"]["graph_module"]["module_call_graph"][0]["signature"]
    return signature["in_spec"], signature["out_spec"]


def stored_views(graph_path: str | os.PathLike[str]) -> dict[str, str]:
    """For each parameter, buffer and constant, the stored tensor that it is a view of."""
    document = json.loads(Path(graph_path).read_text(encoding="utf-8"))
    return {name: entry["stored"] for name, entry in document["tensors"].items()}


def read_document(
    graph_path: str | os.PathLike[str], who: str, manifest: ProgramManifest | None
) -> dict[str, Any]:
    content = Path(graph_path).read_bytes()
    # A cache or a worker may return a file that was damaged since it was built.
    found = hashlib.sha256(content).hexdigest()
    if manifest is not None and found != manifest.graph_sha256:
        raise DriverError(
            f"{who}: this is not the graph that the manifest was written for: it has sha256 "
            f"{found}, expected {manifest.graph_sha256}.\n"
            "  If it came from a cache, it was damaged there: have it removed, and build again."
        )
    document: dict[str, Any] = json.loads(content)
    if document.get("format") != _FORMAT:
        raise DriverError(
            f"{who}: graph has format {document.get('format')!r}, this rules_aoti reads {_FORMAT}"
        )
    return document


def _strip(value: Any) -> None:
    """Removes metadata about the host from the graph and from every graph inside it."""
    if isinstance(value, list):
        for item in value:
            _strip(item)
    elif isinstance(value, dict):
        if "target" in value and isinstance(value.get("metadata"), dict):
            metadata = value["metadata"]
            value["metadata"] = {k: metadata[k] for k in _KEPT_METADATA if k in metadata}
        for item in value.values():
            _strip(item)


def _describe_example_inputs(ep: ExportedProgram) -> list[Any] | None:
    if ep.example_inputs is None:
        return None
    leaves = []
    for i, leaf in enumerate(pytree.tree_leaves(ep.example_inputs)):
        if isinstance(leaf, torch.Tensor):
            entry: Any = {
                "dtype": dtype_name(leaf.dtype, f"input {i}"),
                "shape": [int(n) for n in leaf.shape],
                "stride": [int(n) for n in leaf.stride()],
            }
            leaves.append({"tensor": entry})
        elif leaf is None or isinstance(leaf, (bool, int, float, str)):
            leaves.append({"value": leaf})
        else:
            raise DriverError(
                f"input {i} is a {type(leaf).__name__}; inputs can be tensors, bool, int, float, "
                "str and None"
            )
    return leaves
