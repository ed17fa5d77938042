"""The ``triton_kernel`` subcommand: from a function with ``@triton.jit`` to cubins, C++ and the
source of a Python module.
"""

from __future__ import annotations

import argparse
import dataclasses
from pathlib import Path
from typing import Any

from aoti_driver.base import files
from aoti_driver.base.errors import DriverError
from aoti_driver.contract.request_spec import read_spec
from aoti_driver.cuda import archs, images
from aoti_driver.export.imports import import_attribute
from aoti_driver.export.source import SourceTree
from aoti_driver.triton_kernel import compiling, launcher, parameters, python_module


@dataclasses.dataclass(frozen=True)
class _Spec:
    """The request: the attributes of the rule. header: its path, as C++ includes it. py_module: the
    name of the Python module; empty: none.
    """

    label: str
    program_id: str
    src: str
    fn: str
    signature: dict[str, str]
    constants: dict[str, str]
    divisible_by_16: tuple[str, ...]
    grid: tuple[str, ...]
    num_warps: int
    num_stages: int
    cuda_archs: tuple[str, ...]
    header: str
    namespace: str
    class_name: str
    py_module: str


def add_arguments(parser: argparse.ArgumentParser) -> None:
    repeated: dict[str, Any] = {"action": "append", "default": []}
    parser.add_argument("--spec", required=True)
    parser.add_argument("--source", **repeated, metavar="RUNFILE=PATH")
    parser.add_argument("--import_root", **repeated, metavar="RUNFILES_DIR")
    for flag in ("--out_header", "--out_source", "--out_images", "--out_kernels"):
        parser.add_argument(flag, required=True)
    for flag in ("--out_pymodule", "--out_pyi"):
        parser.add_argument(flag)


def run(args: argparse.Namespace) -> None:
    spec = read_spec(args.spec, _Spec)
    targets = archs.find(spec.cuda_archs, spec.label)
    with files.scratch_directory() as root:
        tree = SourceTree(root, args.import_root)
        tree.add(args.source, "--source")
        tree.activate()
        with tree.as_working_directory():
            where = f'{spec.label}: fn "{spec.fn}" of {spec.src.partition("/")[2]}'
            function = _function(tree, spec, where)
            found = parameters.find(
                function, spec.signature, spec.constants, spec.divisible_by_16, spec.label
            )
            made = launcher.Launcher(
                label=spec.label,
                function=spec.fn,
                header=spec.header,
                namespace=spec.namespace,
                class_name=spec.class_name,
                grid=spec.grid,
                parameters=found,
            )
            # Before the kernel, which takes longer: it may find mistakes.
            header, _ = launcher.header(made), launcher.source(made, "")
            python = _python(made, spec.py_module)
            options = compiling.Options(spec.num_warps, spec.num_stages)
            try:
                kernel = compiling.compile_kernel(function, found, options, targets, where)
            except DriverError as e:
                raise DriverError(tree.scrub(str(e))) from None
    data, table = images.write([kernel], spec.program_id)
    with files.outputs(args.out_header, args.out_source, args.out_images) as paths:
        for path, text in zip(paths, (header, launcher.source(made, table)), strict=False):
            path.write_text(text, encoding="utf-8")
        paths[2].write_bytes(data)
    if python:
        with files.outputs(args.out_pymodule, args.out_pyi) as paths:
            for path, content in zip(paths, python, strict=True):
                path.write_text(content, encoding="utf-8")
    with files.outputs(args.out_kernels) as (folder,):
        _write_kernels(folder, kernel)


def _python(made: launcher.Launcher, module: str) -> tuple[str, str] | None:
    """The source of the module, and its stub."""
    return (python_module.source(made, module), python_module.stub(made)) if module else None


def _function(tree: SourceTree, spec: _Spec, where: str) -> Any:
    path = spec.src.partition("/")[2].removesuffix(".py")
    if not all(part.isidentifier() for part in path.split("/")):
        raise DriverError(
            f'{spec.label}: src "{path}.py" can\'t be imported: use letters, digits and "_" in the '
            "names of the file and its folders"
        )
    module = path.replace("/", ".")
    try:
        function = import_attribute(tree, f"{module}:{spec.fn}", where)
    except DriverError as e:
        # It speaks to users of models, who name sources otherwise.
        raise DriverError(str(e).replace('dep of "module"', 'dep of "deps"')) from None
    kind = type(function).__name__
    if kind in ("Autotuner", "Heuristics"):
        raise DriverError(
            f"{where} is to be tuned on a GPU (@triton.autotune, @triton.heuristics), and no GPU "
            "is there when it is compiled. Give fn the function with @triton.jit alone, and the "
            "choice in constants, num_warps and num_stages"
        )
    if kind != "JITFunction":
        raise DriverError(f"{where} is no Triton kernel: expected a function with @triton.jit")
    return function


def _write_kernels(folder: Path, kernel: images.Kernel) -> None:
    """``sm_80.cubin``, ``sm_80.ptx``: for people, and for other tools."""
    folder.mkdir()
    for image in kernel.images:
        suffix = "ptx" if image.is_ptx else "cubin"
        (folder / f"sm_{image.arch}.{suffix}").write_bytes(image.data)
