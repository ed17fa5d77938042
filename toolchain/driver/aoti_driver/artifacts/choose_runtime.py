"""The ``shim`` subcommand, which chooses the implementation of the C ABI for a program.

It compares the functions that the generated code calls, and the dtypes of these calls, with those
of the slim runtime, before anything is linked. It needs only the standard library.
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from aoti_driver.artifacts import cuda_functions, finder_source
from aoti_driver.artifacts.missing_functions import Missing, find_missing, parse_dtypes, symbol
from aoti_driver.base import files
from aoti_driver.base.errors import DriverError
from aoti_driver.contract import source_locations
from aoti_driver.contract.code_parts import Codegen, Packed, Shim, Variant
from aoti_driver.contract.manifest import ChosenShim, CodeManifest, LibraryManifest
from aoti_driver.contract.manifest_file import read_manifest, to_json
from aoti_driver.contract.namespaces import is_own
from aoti_driver.contract.request_spec import read_spec

_INT4 = "aten::_weight_int4pack_mm_for_cpu"


@dataclasses.dataclass(frozen=True)
class _Spec:
    """The request; libtorch: whether the target has one. library: its runfile, or empty.

    custom_ops: the labels of the targets with operators of the program's own.
    operator_libraries: the names of their libraries on libtorch.
    """

    label: str
    libtorch: bool
    library: str
    mode: Literal["auto", "slim", "libtorch"]
    custom_ops: tuple[str, ...]
    operator_libraries: tuple[str, ...]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--spec", required=True, type=Path, help="JSON: label, libtorch, mode, library"
    )
    parser.add_argument("--manifest", required=True, type=Path, help="what codegen wrote")
    parser.add_argument(
        "--variant",
        action="append",
        default=[],
        type=Path,
        help="what it wrote for CUDA, then for higher instruction sets; the highest first",
    )
    parser.add_argument("--functions", required=True, type=Path, help="what slim has")
    parser.add_argument("--dtypes", required=True, type=Path, help="and for which dtypes")
    parser.add_argument("--locations", type=Path, help="graph node -> source line")
    parser.add_argument("--out_unused", help="lists the locations, which only errors need")
    parser.add_argument("--out_manifest", required=True)
    parser.add_argument("--out_source", required=True)


def run(args: argparse.Namespace) -> None:
    spec = read_spec(args.spec, _Spec)
    label, mode = spec.label, spec.mode
    manifest = read_manifest(args.manifest, CodeManifest, who=label)
    others = [read_manifest(path, CodeManifest, who=label).codegen for path in args.variant]
    codegen = needs_of_all(manifest.codegen, others)
    on_default = [one for one in others if one.device == manifest.codegen.device]
    default = needs_of_all(manifest.codegen, on_default)
    variants = tuple(Variant(one.isa, one.program_id, one.constants, one.device) for one in others)
    functions = set(args.functions.read_text(encoding="utf-8").split())
    locations = {}
    if args.locations is not None:
        locations = source_locations.from_json(args.locations.read_text(encoding="utf-8"))
    dtypes = parse_dtypes(args.dtypes.read_text(encoding="utf-8"))
    others_than_torchs = [shim.name for shim in codegen.shims if is_own(shim.name)]
    # torchvision's, which slim has.
    vision = [name for name in others_than_torchs if symbol(name) in functions]
    own = [name for name in others_than_torchs if name not in vision]
    if own and not spec.custom_ops:
        raise DriverError(_without_target(label, own))
    for one in (manifest.codegen, *others):
        if one.device == "cuda":
            called = needs_of_all(one, ()).shims
            cuda_functions.check(label, mode, called, functions, locations)
    shims = [shim for shim in codegen.shims if shim.name not in own]
    needed = [shim for shim in default.shims if shim.name not in own]
    missing = find_missing(needed, functions, dtypes, locations)
    if missing and len(on_default) < len(others):
        raise DriverError(_uncovered_on_cpu(label, missing))
    if mode == "slim" and missing:
        raise DriverError(_uncovered(label, missing, spec.libtorch))
    chosen: ChosenShim = "libtorch" if mode == "libtorch" or missing else "slim"
    if chosen == "libtorch" and vision:
        raise DriverError(_only_on_slim(label, vision, missing))
    if mode == "auto" and missing:
        names = ", ".join(m.name for m in missing)
        print(
            f"{label}: linked with libtorch, because the slim runtime has no {names}",
            file=sys.stderr,
        )
    if chosen == "libtorch" and any(shim.name == _INT4 for shim in codegen.shims):
        raise DriverError(_unportable(label, missing))
    programs = [codegen.program_id, *(variant.program_id for variant in variants)]
    if chosen == "slim":
        source = finder_source.linked(label, programs, own, shims)
    elif mode == "libtorch":
        source = finder_source.dependency(label, programs, spec.operator_libraries)
    else:
        source = finder_source.loaded(label, programs, spec.operator_libraries, spec.library)
    library = LibraryManifest(manifest.program, codegen, chosen, variants)
    texts = {args.out_manifest: to_json(library), args.out_source: source}
    if args.out_unused is not None:
        texts[args.out_unused] = f"{args.locations}\n"
    with files.outputs(*texts) as paths:
        for path, text in zip(paths, texts.values(), strict=True):
            path.write_text(text, encoding="utf-8")


def needs_of_all(codegen: Codegen, others: Sequence[Codegen]) -> Codegen:
    """``codegen`` with everything that the code for a higher instruction set or for CUDA needs."""
    every = (codegen, *others)
    shims: dict[str, Shim] = {}
    for shim in (shim for one in every for shim in one.shims):
        before = shims.get(shim.name, shim).dtypes
        shims[shim.name] = dataclasses.replace(shim, dtypes=tuple(sorted({*before, *shim.dtypes})))
    packed: dict[str, Packed] = {item.name: item for one in every for item in one.packed}
    for name, item in packed.items():
        # A program that packs a weight in another way, or does not pack it, may read the plain
        # weight.
        only = all(any(p.name == name and p.only for p in one.packed) for one in every)
        packed[name] = dataclasses.replace(item, only=only)
    return dataclasses.replace(
        codegen,
        shims=tuple(shims[name] for name in sorted(shims)),
        packed=tuple(packed.values()),
        cuda=next((one.cuda for one in every if one.cuda is not None), None),
    )


def _unportable(label: str, missing: Sequence[Missing]) -> str:
    reason = "".join(f"\n{m}" for m in missing)
    return (
        f"{label}: linear layers with 4-bit weights can't run on libtorch: their weights are "
        "packed when the model is built, and libtorch assumes the layout for the CPU that it runs "
        'on, which gives wrong results on most CPUs. Use shim = "slim"'
        + (f"; it lacks what this model needs beside them:{reason}" if missing else "")
    )


def _only_on_slim(label: str, vision: Sequence[str], missing: Sequence[Missing]) -> str:
    if missing:
        names = ", ".join(m.name for m in missing)
        why = f"the slim runtime has no {names}"
        remedy = f"Write the model without {names}"
    else:
        why, remedy = 'shim = "libtorch" asks for it', 'Use shim = "auto" or "slim"'
    return (
        f"{label}: the program calls {', '.join(vision)}, which libtorch does not have, and would "
        f"run on libtorch, because {why}. {remedy}, or return what goes into {vision[0]}, and do "
        "the rest in the program that calls the model"
    )


def _without_target(label: str, own: Sequence[str]) -> str:
    return (
        f"{label}: the program calls operators that aren't PyTorch's own: {', '.join(own)}. Give "
        "the torch_custom_ops targets that have them to custom_ops"
    )


def _decompose(missing: Sequence[Missing]) -> str:
    operators = [name for m in missing for name in m.operators]
    example = operators[0] if operators else "aten.<operator>.default"
    return (
        "have the operator replaced by simpler ones if PyTorch can "
        f'(decompositions = ["{example}"])'
    )


def _uncovered_on_cpu(label: str, missing: Sequence[Missing]) -> str:
    listing = "\n".join(map(str, missing))
    return (
        f'{label}: devices = ["cpu", "cuda"]: such models run on the slim runtime alone, which '
        f"lacks what the code for the CPU needs:\n{listing}\n"
        f"Either {_decompose(missing)}, or compile a target of its own for each device"
    )


def _uncovered(label: str, missing: Sequence[Missing], libtorch: bool) -> str:
    decompose = _decompose(missing)
    listing = "\n".join(map(str, missing))
    if not libtorch:
        return (
            f"{label}: the slim runtime lacks what this model needs, and the torch runtime "
            f"toolchain has no libtorch for the target platform:\n{listing}\n"
            f"Either {decompose}, or register a torch_runtime_toolchain with libtorch for it"
        )
    return (
        f'{label}: shim = "slim", but the slim runtime lacks what this model needs:\n{listing}\n'
        f'Either link libtorch (shim = "libtorch", or "auto"), or {decompose}'
    )
