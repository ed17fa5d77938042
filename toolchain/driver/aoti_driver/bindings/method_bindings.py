"""The ``method_bindings`` subcommand: one typed C++ class, and one Python module,
for the programs of several methods.

It needs only the standard library, so that new bindings never wait for torch.
"""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Sequence
from pathlib import Path

from aoti_driver.base import files
from aoti_driver.base.errors import DriverError
from aoti_driver.bindings import (
    build_model,
    digest_source,
    method_header,
    method_implementation,
    method_pymodule,
    method_stub,
    names,
)
from aoti_driver.bindings.functions import functions
from aoti_driver.bindings.model import Method, Methods, MethodsSpec
from aoti_driver.contract import method_weights
from aoti_driver.contract.manifest import LibraryManifest
from aoti_driver.contract.manifest_file import read_manifest
from aoti_driver.contract.request_spec import read_spec

_STRUCTS = ("Inputs", "Outputs")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--spec", required=True, type=Path, help="JSON: what to call things")
    parser.add_argument("--manifest", action="append", default=[], help="of each method")
    parser.add_argument("--out_header", required=True)
    parser.add_argument("--out_cc", required=True)
    parser.add_argument("--out_digest", required=True)
    parser.add_argument("--out_pymodule", required=True)
    parser.add_argument("--out_pyi", required=True)


def run(args: argparse.Namespace) -> None:
    spec = read_spec(args.spec, MethodsSpec)
    methods = build(spec, [read_manifest(path, LibraryManifest) for path in args.manifest])
    if spec.spaces:
        from aoti_driver.bindings import coverage  # needs sympy, which takes a while to import

        for function in functions(methods):
            coverage.check(spec.label, function, spec.spaces)
    texts = {
        args.out_header: method_header.generate(methods),
        args.out_cc: method_implementation.generate(methods),
        args.out_digest: digest_source.generate(
            spec.program_id, label=spec.label, digest=methods.digest
        ),
        args.out_pymodule: method_pymodule.generate(methods),
        args.out_pyi: method_stub.generate(methods),
    }
    with files.outputs(*texts) as paths:
        for path, text in zip(paths, texts.values()):
            path.write_text(text, encoding="utf-8")


def build(spec: MethodsSpec, libraries: Sequence[LibraryManifest]) -> Methods:
    """Computes everything; raises DriverError for programs that can't be methods of one model."""
    renamed = {
        name: method_weights.of_method(name, library)
        for name, library in zip(spec.methods, libraries, strict=True)
    }
    _check_alike(spec, renamed)
    tensors = method_weights.merge(spec.label, renamed)
    methods = []
    for key, library in renamed.items():
        model = build_model.build(spec.names, library)
        reads = frozenset(packed.name for packed in model.packed)
        shared = dataclasses.replace(model, weights=tensors.constants, packed=tensors.packed)
        name, _, variant = key.partition(".")
        methods.append(Method(name, shared, reads, variant))
    taken = [(f"class {spec.names.class_name}", spec.names.class_name)]
    taken += [
        (f"function {name}()", name) for name in ("Load", "Specs", "SwapAdapter", "SwapWeights")
    ]
    if methods[0].model.has_state:
        taken += [("class Session", "Session"), ("function NewSession()", "NewSession")]
        taken += [(f"function Session::{name}()", name) for name in ("Fork", "Reset", "Save")]
    result = Methods(spec, tuple(methods))
    found = functions(result)
    if any(function.has_variants for function in found):
        taken.append(("function Functions()", "Functions"))
    for function in found:
        prefix = function.cpp_prefix
        taken.append((f"method {function.name}", function.cpp_call))
        taken += [(f"struct {prefix}{s}", f"{prefix}{s}") for s in _STRUCTS]
        if function.has_variants:
            taken.append((f"function Explain{prefix}()", f"Explain{prefix}"))
    names.check_unique(taken, f"{spec.label}:")
    return result


def _devices(library: LibraryManifest) -> str:
    return ", ".join(library.devices)


def _check_alike(spec: MethodsSpec, libraries: dict[str, LibraryManifest]) -> None:
    first, *others = libraries
    for other in others:
        for what, one, two in (
            (
                "torch",
                libraries[first].program.torch_version,
                libraries[other].program.torch_version,
            ),
            ("the device", _devices(libraries[first]), _devices(libraries[other])),
        ):
            if one != two:
                raise DriverError(
                    f"{spec.label}: {first} ({libraries[first].program.label}) is compiled for "
                    f"{what} {one}, and {other} ({libraries[other].program.label}) for {what} "
                    f"{two}: the methods of a model run in one process, on one device. Build both "
                    "with one toolchain."
                )
