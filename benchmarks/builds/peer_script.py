"""The peers: scripts as a user of PyTorch would write them.

usage: peer_script.py package PACKAGE.pt2 ARGUMENT...    `aoti_compile_and_package`
       peer_script.py compile ARGUMENT...                a call of `torch.compile`'s function

The arguments are the export step's. The module, its weights and its sample inputs are made by the
driver's code, so that it is the same model; nothing of what the driver does beyond PyTorch is done.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import torch
from aoti_driver.contract.request_spec import read_spec
from aoti_driver.export import building
from aoti_driver.export.building import ModelSpec
from aoti_driver.export.calls import Call


def package(path: str, spec: ModelSpec, module: torch.nn.Module, call: Call) -> None:
    from torch._inductor import aoti_compile_and_package

    # torch.export takes sizes of 0 and 1 to be special: a user's script says 2.
    dims = {
        name: torch.export.Dim(name, min=max(low, 2), max=high)
        for name, (low, high) in spec.dims.ranges.items()
    }
    program = torch.export.export(
        module, call.args, call.kwargs, dynamic_shapes=call.dynamic_shapes(module, dims)
    )
    aoti_compile_and_package(program, package_path=path)


def compile_and_call(spec: ModelSpec, module: torch.nn.Module, call: Call) -> None:
    torch.compile(module, dynamic=bool(spec.dims.ranges))(*call.args, **call.kwargs)


def main() -> None:
    parser = argparse.ArgumentParser()
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("package").add_argument("path")
    commands.add_parser("compile")
    for command in commands.choices.values():
        command.add_argument("--spec")
        building.add_source_arguments(command)
    args, _ = parser.parse_known_args()
    with tempfile.TemporaryDirectory() as scratch, torch.no_grad():
        spec = building.parse_spec(read_spec(args.spec, building.ExportSpec))
        tree, weights = building.lay_out(args, Path(scratch) / "runfiles")
        module = building.build_module(tree, spec, weights)
        call = building.make_call(tree, spec, module)
        if args.command == "package":
            package(args.path, spec, module, call)
        else:
            compile_and_call(spec, module, call)


if __name__ == "__main__":
    main()
