"""The ``bindings`` subcommand: a model's typed C++ class and its Python module, from the manifest.

It needs only the standard library, so that new bindings never wait for torch.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from aoti_driver.base import files
from aoti_driver.bindings import (
    build_model,
    digest_source,
    header,
    implementation,
    model,
    pymodule,
    stub,
)
from aoti_driver.contract.manifest import LibraryManifest
from aoti_driver.contract.manifest_file import read_manifest
from aoti_driver.contract.request_spec import read_spec


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--spec", required=True, type=Path, help="JSON: what to call things")
    parser.add_argument("--manifest", required=True, type=Path, help="what codegen wrote")
    parser.add_argument("--out_header", required=True)
    parser.add_argument("--out_cc", required=True)
    parser.add_argument("--out_digest", required=True)
    parser.add_argument("--out_pymodule", required=True)
    parser.add_argument("--out_pyi", required=True)


def run(args: argparse.Namespace) -> None:
    spec = read_spec(args.spec, model.Spec)
    built = build_model.build(spec, read_manifest(args.manifest, LibraryManifest))
    texts = {
        args.out_header: header.generate(built),
        args.out_cc: implementation.generate(built),
        args.out_digest: digest_source.generate(
            built.program_id, label=built.program.label, digest=built.program.graph_sha256
        ),
        args.out_pymodule: pymodule.generate(built),
        args.out_pyi: stub.generate(built),
    }
    with files.outputs(*texts) as paths:
        for path, text in zip(paths, texts.values()):
            path.write_text(text, encoding="utf-8")
