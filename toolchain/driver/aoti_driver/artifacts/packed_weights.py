"""The ``pack`` subcommand: the weights file that a program reads at run time.

For the slim runtime, some weights are in the layouts that operators read fastest, so that nothing
is packed when a model is loaded. Weights that are only read in such a layout are left out.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import TYPE_CHECKING

from aoti_driver.artifacts import provenance
from aoti_driver.base import files
from aoti_driver.contract.code_parts import Packed
from aoti_driver.contract.manifest import LibraryManifest
from aoti_driver.contract.manifest_file import read_manifest
from aoti_driver.program import safetensors_header

if TYPE_CHECKING:
    import torch

    from aoti_driver.program.weights_file import Bytes


def add_arguments(parser: argparse.ArgumentParser) -> None:
    for flag in ("--weights", "--manifest", "--out"):
        parser.add_argument(flag, required=True)
    parser.add_argument("--provenance", default="", help="what the file says of its making")


def run(args: argparse.Namespace) -> None:
    library = read_manifest(args.manifest, LibraryManifest)
    packed_constants = library.codegen.packed
    metadata = {}
    if args.provenance:
        metadata[provenance.METADATA] = provenance.with_weights(args.provenance, args.weights)
    with files.outputs(args.out) as (out,):
        if library.shim != "slim" or not packed_constants:
            safetensors_header.copy_with_metadata(args.weights, out, metadata)
            return
        from aoti_driver.program.weights_file import read_weights, write_weights

        weights = read_weights(args.weights)
        unread = {packed.source for packed in packed_constants if packed.only}
        tensors: dict[str, torch.Tensor | Bytes] = {
            name: tensor for name, tensor in weights.items() if name not in unread
        }
        for packed in packed_constants:
            tensors[packed.name] = _packed(packed, weights[packed.source])
        write_weights(out, tensors, metadata)


def _packed(packed: Packed, plain: torch.Tensor) -> Bytes:
    """The packed tensor, which is in memory only while it is written."""
    import torch

    from aoti_driver.packing import convolution, matmul, packed_format
    from aoti_driver.program.weights_file import Bytes, raw_bytes

    def make() -> Iterator[bytes | memoryview]:
        pack = convolution.pack if packed.kind in convolution.KINDS else matmul.pack
        data = pack(packed.kind, plain, **packed.options)
        # Padded to cache lines, so that every packed tensor begins at one.
        if padding := -len(data) % packed_format.ALIGNMENT:
            data = torch.nn.functional.pad(data, (0, padding))
        yield raw_bytes(data)
        yield packed_format.about(packed.name, raw_bytes(plain), raw_bytes(data))

    size = packed_format.layout_size(packed.kind, plain.shape, packed.options)
    return Bytes(size + packed_format.ALIGNMENT, make)
