"""The peer: `torch.export` and `aoti_compile_and_package`, as a script of a user would call them.

usage: stock.py PACKAGE.pt2 ARGUMENT...    (the export step's command line)

The module, its weights and its sample inputs are made by the driver's code, so that it is the same
model; nothing of what the driver does beyond PyTorch is done.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

import torch
from aoti_driver.contract.request_spec import read_spec
from aoti_driver.export import building
from torch._inductor import aoti_compile_and_package


def main() -> None:
    package, *arguments = sys.argv[1:]
    parser = argparse.ArgumentParser()
    parser.add_argument("--spec")
    building.add_source_arguments(parser)
    args, _ = parser.parse_known_args(arguments)
    with tempfile.TemporaryDirectory() as scratch, torch.no_grad():
        spec = building.parse_spec(read_spec(args.spec, building.ExportSpec))
        tree, weights = building.lay_out(args, Path(scratch) / "runfiles")
        module = building.build_module(tree, spec, weights)
        call = building.make_call(tree, spec, module)
        # torch.export takes sizes of 0 and 1 to be special: a user's script says 2.
        dims = {
            name: torch.export.Dim(name, min=max(low, 2), max=high)
            for name, (low, high) in spec.dims.ranges.items()
        }
        program = torch.export.export(
            module, call.args, call.kwargs, dynamic_shapes=call.dynamic_shapes(module, dims)
        )
        aoti_compile_and_package(program, package_path=package)


if __name__ == "__main__":
    main()
