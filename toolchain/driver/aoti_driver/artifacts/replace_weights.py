"""``replace_weights``: gives a program other weights, without a new export.

The file may be one that the build wrote, or a state dict saved as safetensors. It must have the
program's tensors, by fully qualified name, shape and dtype. Tied tensors may have any of their
names. Constants that are not part of the state dict (tables that forward() or a non-persistent
buffer makes) may be left out: then they keep the program's values.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from aoti_driver.base import files
from aoti_driver.base.errors import DriverError, did_you_mean, plural
from aoti_driver.contract.dtypes import DTYPES
from aoti_driver.contract.manifest import ProgramManifest
from aoti_driver.contract.manifest_file import read_manifest
from aoti_driver.contract.program_parts import Constant
from aoti_driver.contract.request_spec import read_spec
from aoti_driver.packing import convolution, matmul
from aoti_driver.program import safetensors_header
from aoti_driver.program.weights_file import read_weights, write_weights

_SHOWN = 20
_FROM_SAFETENSORS = {dtype.safetensors: name for name, dtype in DTYPES.items()}


@dataclasses.dataclass(frozen=True)
class _Program:
    """The program's data about its tensors."""

    constants: Mapping[str, Constant]
    views: Mapping[
        str, Mapping[str, Any]
    ]  # for each name in the program, its view of a stored tensor
    state_dict: frozenset[str]

    def names(self, stored: str) -> list[str]:
        """All names of the stored tensor as a whole, its own name first."""
        names = [stored]
        for name, view in self.views.items():
            if view["stored"] == stored and name != stored and self.is_whole(view):
                names.append(name)
        return names

    def is_whole(self, view: Mapping[str, Any]) -> bool:
        """Whether the view is the whole stored tensor."""
        constant = self.constants[view["stored"]]
        if tuple(view["shape"]) != constant.shape or view["offset"] != 0:
            return False
        strides = zip(view["shape"], view["stride"], _contiguous(constant.shape))
        return view["dtype"] == constant.dtype and all(n == 1 or a == b for n, a, b in strides)

    def is_permuted(self, stored: str, shape: Sequence[int]) -> bool:
        """Whether ``shape`` is the tensor's shape in the module, and its memory is in another
        order.
        """
        view = self.views.get(stored)
        return (
            view is not None
            and list(view["shape"]) == list(shape) != list(self.constants[stored].shape)
            and math.prod(shape) == math.prod(self.constants[stored].shape)
        )

    def required(self, stored: str) -> bool:
        return any(
            view["stored"] == stored and name in self.state_dict
            for name, view in self.views.items()
        )


@dataclasses.dataclass(frozen=True)
class _Spec:
    """The request; given: the weights, as a user names them."""

    label: str
    given: str


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--spec", required=True, help="JSON: label, given")
    for flag in ("--graph", "--manifest", "--weights", "--new_weights", "--out"):
        parser.add_argument(flag, required=True)


def run(args: argparse.Namespace) -> None:
    spec = read_spec(args.spec, _Spec)
    where = f"{spec.label}: weights = {spec.given}"
    manifest = read_manifest(args.manifest, ProgramManifest, who=spec.label)
    document = json.loads(Path(args.graph).read_text(encoding="utf-8"))
    program = _Program(
        {constant.name: constant for constant in manifest.constants},
        document["tensors"],
        frozenset(document["state_dict"]),
    )
    _check_program(args.new_weights, manifest, where)
    header, _ = safetensors_header.read_header(args.new_weights, where)
    _check_plain(program, header, where)
    chosen = match(program, header, where)
    old, new = read_weights(args.weights), read_weights(args.new_weights)
    tensors = {}
    for stored in program.constants:
        names = chosen.get(stored, [])
        tensors[stored] = _stored(program, stored, new[names[0]]) if names else old[stored]
        for name in names[1:]:
            if not torch.equal(_bits(new[name]), _bits(tensors[stored])):
                raise DriverError(
                    f'{where}: "{names[0]}" and "{name}" are one tensor in the program, but have '
                    "different values in the file. Make them equal, or export a program in which "
                    "they are not tied."
                )
    with files.outputs(args.out) as (out,):
        write_weights(out, tensors)


def _check_program(path: str, manifest: ProgramManifest, where: str) -> None:
    """Refuses a file that says it was made for another program."""
    key = safetensors_header.PROGRAM_KEY
    made_for = safetensors_header.read_metadata(path, where).get(key, manifest.graph_sha256)
    if made_for != manifest.graph_sha256:
        raise DriverError(
            f"{where}: its metadata says that it was made for the program {made_for}, but the "
            f"program of {manifest.label} is {manifest.graph_sha256}. Make the file with this "
            f'program, or leave "{key}" out of its metadata if its tensors mean the same.'
        )


def match(
    program: _Program, header: Mapping[str, Mapping[str, Any]], where: str
) -> dict[str, list[str]]:
    """For each stored tensor, its names in the file; raises an error that lists everything that
    does not match.
    """
    chosen: dict[str, list[str]] = {}
    missing, wrong = [], []
    used = set()
    for stored, constant in program.constants.items():
        present = [name for name in program.names(stored) if name in header]
        used.update(present)
        if present:
            chosen[stored] = present
        elif program.required(stored):
            missing.append(stored)
        for name in present:
            entry = header[name]
            dtype = _FROM_SAFETENSORS.get(entry["dtype"], entry["dtype"])
            if dtype == constant.dtype and program.is_permuted(stored, entry["shape"]):
                continue
            if (dtype, tuple(entry["shape"])) != (constant.dtype, constant.shape):
                found = f"{dtype}{list(entry['shape'])}"
                wrong.append(f"{name}  is {found}, the program has {_text(constant)}")
            elif stored in program.views and not program.is_whole(program.views[stored]):
                _check_unambiguous(program, stored, where)
    extra = [name for name in header if name not in used]
    problems = [
        *_table(
            "missing",
            [f"{n}  {_text(program.constants[n])}{did_you_mean(n, extra)}" for n in missing],
        ),
        *_table("not in the program", [_entry(n, header[n]) for n in extra]),
        *_table("of another shape or dtype", wrong),
    ]
    if problems:
        raise DriverError(
            "\n".join(
                [
                    f"{where}: the file does not fit the program:",
                    *problems,
                    "  Change the file (names are those of the exported module's state dict), or "
                    "export a program for it: torch_export(weights = ...).",
                ]
            )
        )
    return chosen


def _check_plain(program: _Program, header: Mapping[str, Any], where: str) -> None:
    for name in header:
        source, _, kind = name.rpartition("#")
        if kind in (*matmul.KINDS, *convolution.KINDS) and source in program.constants:
            raise DriverError(
                f'{where}: "{name}" is packed for one program on the slim runtime; expected the '
                "tensors as the module has them. Give the file that they were packed from: the "
                'output group "weights" of its aoti_model or aoti_library, or a saved state dict.'
            )


def _check_unambiguous(program: _Program, stored: str, where: str) -> None:
    """Refuses a square weight that the module stores transposed: a file could have it in either
    order.
    """
    view = program.views[stored]
    if tuple(view["shape"]) == program.constants[stored].shape:
        raise DriverError(
            f'{where}: "{stored}" is a view of its memory (strides {list(view["stride"])}), so a '
            "file could mean it or its memory. Make it contiguous in the model "
            "(torch.nn.Parameter(w.contiguous())) and export anew."
        )


def _stored(program: _Program, stored: str, tensor: torch.Tensor) -> torch.Tensor:
    """Converts a tensor of the file to the form in the program's weights file."""
    if not program.is_permuted(stored, tensor.shape):
        return tensor.contiguous()
    view = program.views[stored]
    memory = torch.empty(program.constants[stored].shape, dtype=tensor.dtype)
    memory.as_strided(view["shape"], view["stride"], view["offset"]).copy_(tensor)
    return memory


def _contiguous(shape: Sequence[int]) -> tuple[int, ...]:
    strides = []
    step = 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))


def _bits(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.contiguous().reshape(-1).view(torch.uint8)


def _text(constant: Constant) -> str:
    return f"{constant.dtype}{list(constant.shape)}"


def _entry(name: str, entry: Mapping[str, Any]) -> str:
    dtype = _FROM_SAFETENSORS.get(entry["dtype"], entry["dtype"])
    return f"{name}  {dtype}{list(entry['shape'])}"


def _table(title: str, rows: Sequence[str]) -> list[str]:
    if not rows:
        return []
    hidden = len(rows) - _SHOWN
    more = [f"    ... and {hidden} more"] if hidden > 0 else []
    heading = f"  {plural(len(rows), 'tensor')} {title}:"
    return [heading, *(f"    {row}" for row in rows[:_SHOWN]), *more]
