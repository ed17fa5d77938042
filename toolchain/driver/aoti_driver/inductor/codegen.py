"""The ``codegen`` subcommand: from a frozen program to C++, without the weights or a compiler."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import ConstantArgument, OutputKind

from aoti_driver.base import files
from aoti_driver.base.errors import DriverError
from aoti_driver.contract import isa, json_records, source_locations
from aoti_driver.contract.code_parts import Codegen, CudaCode, Packed, ProgramConstant
from aoti_driver.contract.manifest import CodeManifest, ProgramManifest
from aoti_driver.contract.manifest_file import read_manifest, to_json
from aoti_driver.contract.request_spec import read_spec
from aoti_driver.cuda import archs, images, tuning_file
from aoti_driver.inductor import (
    assumed_sizes,
    config_options,
    constant_sizes,
    generator,
    object_helpers,
    repeats,
    short_programs,
)
from aoti_driver.inductor.cpp_source import make_sources
from aoti_driver.inductor.generator_errors import errors_for
from aoti_driver.packing import matmul
from aoti_driver.program import (
    fakes,
    graph_file,
    loading,
    objects,
    size_arithmetic,
    triton_operators,
)
from aoti_driver.program.blob import blob_size
from aoti_driver.program.weights_file import dtype_name

_IDENTIFIER = re.compile(r"[A-Za-z][A-Za-z0-9_]*\Z")


@dataclasses.dataclass(frozen=True)
class _Spec:
    """The request. measured: the program has all candidates of each product (cuda/tiles.py)."""

    program_id: str
    isa: str
    options: dict[str, str]
    device: str = dataclasses.field(default="cpu", metadata=json_records.OPTIONAL)
    cuda_archs: tuple[str, ...] = dataclasses.field(default=(), metadata=json_records.OPTIONAL)
    measured: bool = dataclasses.field(default=False, metadata=json_records.OPTIONAL)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    for flag in ("--spec", "--graph", "--manifest"):
        parser.add_argument(flag, required=True)
    fakes.add_arguments(parser)
    for flag in ("--out_wrapper", "--out_kernels", "--out_manifest"):
        parser.add_argument(flag, required=True)
    parser.add_argument("--out_cuda_images")
    parser.add_argument("--tuning")
    parser.add_argument("--locations", help="JSON: the source line of each node of the graph")
    parser.add_argument("--out_unused", help="lists the locations, which only errors need")


def run(args: argparse.Namespace) -> None:
    spec = read_spec(args.spec, _Spec)
    if not _IDENTIFIER.match(spec.program_id):
        raise DriverError(f"program_id {spec.program_id!r} is not a C++ identifier")
    manifest = read_manifest(args.manifest, ProgramManifest)
    target = isa.find(spec.isa)
    options = config_options.parse_options(spec.options, manifest.label)
    cuda_archs = archs.find(spec.cuda_archs, manifest.label) if spec.device == "cuda" else ()
    if cuda_archs and manifest.precision == "int8":
        raise DriverError(
            f'{manifest.label}: precision = "int8" is for CPUs, and the model is built for CUDA; '
            'give `precision = "bfloat16"`, or leave it out'
        )
    tuning = tuning_file.read(args.tuning, cuda_archs) if args.tuning else None
    if spec.measured:
        tuning = tuning_file.Tuning(measured=True)
    # On a machine with one thread, PyTorch computes a convolution in another way, and Inductor
    # chooses another layout for its result.
    torch.set_num_threads(2)

    # What short programs leave out may write too.
    mutated = {constant.name for constant in manifest.constants if constant.mutated}
    views = graph_file.stored_views(args.graph)
    written = {name for name, stored in views.items() if stored in mutated}

    def generate(program: ExportedProgram, share_blocks: bool) -> generator.Generated:
        return generator.generate(
            program,
            target,
            suffix=f"_{spec.program_id}",
            call_spec=graph_file.call_spec(args.graph),
            options=options,
            written=written,
            share_blocks=share_blocks,
            cuda_archs=cuda_archs,
            tuning=tuning,
        )

    short = short_programs.Shortened()

    def load(share_blocks: bool) -> ExportedProgram:
        change = short.shorten if share_blocks else None
        return loading.load_program(args.graph, manifest, None, flat=True, change=change)

    with contextlib.ExitStack() as stack:
        stack.enter_context(size_arithmetic.remembered())
        stack.enter_context(short_programs.operators())
        share_blocks = not cuda_archs
        stack.enter_context(fakes.laid_out(args))
        # The program declares its own operators, for which the files register fake kernels.
        ep = load(share_blocks)
        fakes.register(args)
        if not cuda_archs:
            triton_operators.refuse_without_cpu(ep, _locations(args), manifest.label)
        stack.enter_context(errors_for(manifest.label))
        while True:
            places = constant_sizes.places(ep)
            env = constant_sizes.environment(ep)
            ranges = dict(env.var_to_range) if env is not None else {}
            try:
                with assumed_sizes.recorded(env) as guards:
                    generated = generate(ep, share_blocks)
                break
            except repeats.UnfitError as e:
                if not share_blocks:
                    raise
                # What was tried may have left something in the program.
                if e.group is None:
                    short, share_blocks = short_programs.Shortened(), False
                else:
                    short.excluded.add(short.groups[e.group])
                ep = load(share_blocks)
    tensor_outputs = _output_is_tensor(ep)
    _refuse_operators(generated.refused, manifest.label)
    constant_sizes.refuse(generated.replaced, places, manifest.inputs, manifest.label)
    assumed_sizes.refuse(guards, ranges, places, manifest.inputs, manifest.label)
    if generated.outputs != len(tensor_outputs):
        raise DriverError(
            f"{manifest.label}: Inductor (torch {torch.__version__}) returns {generated.outputs} "
            f"values where the exported program returns {len(tensor_outputs)}: it counts something "
            "that forward() writes to as a result. Write to buffers (self.register_buffer) alone, "
            "or return what forward() changes."
        )
    constants = _constants(ep, generated, args.graph, manifest)
    cuda_images, cuda_table = (
        images.write(generated.cuda_kernels, spec.program_id) if cuda_archs else (b"", "")
    )
    sources = make_sources(
        generated,
        label=manifest.label,
        program_id=spec.program_id,
        output_is_tensor=tensor_outputs,
        blob_size=blob_size(constants, manifest),
        cuda_table=cuda_table,
        objects=object_helpers.constants_of(objects.of_program(ep), constants),
    )
    codegen = Codegen(
        program_id=spec.program_id,
        device=spec.device,
        isa=target.name,
        options={name: json.dumps(value) for name, value in sorted(options.items())},
        shims=generated.calls.describe(
            ep, (sources.wrapper, *sources.kernels.values()), short.twins
        ),
        constants=constants,
        packed=_packed(generated, constants, manifest),
        cuda=CudaCode(
            tuple(arch.name for arch in cuda_archs),
            len(generated.cuda_kernels),
            generated.cuda_products,
        )
        if cuda_archs
        else None,
    )
    texts = {
        args.out_wrapper: sources.wrapper,
        args.out_manifest: to_json(CodeManifest(manifest, codegen)),
    }
    if args.out_unused is not None:
        texts[args.out_unused] = f"{args.locations}\n"
    if cuda_archs:
        with files.outputs(args.out_cuda_images) as (path,):
            path.write_bytes(cuda_images)
    with files.outputs(args.out_kernels, *texts) as (kernels, *paths):
        kernels.mkdir()
        for name, text in sources.kernels.items():
            (kernels / name).write_text(text, encoding="utf-8")
        for path, text in zip(paths, texts.values(), strict=True):
            path.write_text(text, encoding="utf-8")


def _locations(args: argparse.Namespace) -> Mapping[str, source_locations.Location]:
    if args.locations is None:
        return {}
    return source_locations.from_json(Path(args.locations).read_text(encoding="utf-8"))


def _packed(
    generated: generator.Generated, constants: Sequence[ProgramConstant], manifest: ProgramManifest
) -> tuple[Packed, ...]:
    """The stored tensors to pack: complete tensors that the program only reads, each in one
    layout.
    """
    stored = {constant.name: constant for constant in manifest.constants}
    by_symbol = {symbol.symbol: symbol for symbol in generated.packed}
    views: dict[str, list[ProgramConstant]] = {}
    for constant in constants:
        views.setdefault(constant.source, []).append(constant)
    packed = []
    for source, constants_of_it in views.items():
        found = [by_symbol[c.symbol] for c in constants_of_it if c.symbol in by_symbol]
        whole = all(
            c.shape == stored[source].shape and c.dtype == stored[source].dtype and c.offset == 0
            for c in constants_of_it
        )
        if not found or not whole or stored[source].mutated:
            continue
        first = found[0]
        only = len(found) == len(constants_of_it) and all(
            symbol.only and (symbol.kind, symbol.options) == (first.kind, first.options)
            for symbol in found
        )
        if first.kind in matmul.KINDS and not only:
            continue  # a second copy would gain less than its memory costs
        packed.append(Packed(source, first.kind, first.options, only))
    return tuple(packed)


def _output_is_tensor(ep: ExportedProgram) -> list[bool]:
    specs = ep.graph_signature.output_specs
    return [
        not isinstance(spec.arg, ConstantArgument)
        for spec in specs
        if spec.kind == OutputKind.USER_OUTPUT
    ]


def _constants(
    ep: ExportedProgram, generated: generator.Generated, graph: str, manifest: ProgramManifest
) -> tuple[ProgramConstant, ...]:
    """Finds, for each tensor that the code refers to, the stored tensor that it is a view of."""
    views = graph_file.stored_views(graph)
    owners: dict[int, str] = {}
    for name, tensor in [*ep.state_dict.items(), *ep.constants.items()]:
        if tensor.untyped_storage().nbytes():
            owners[tensor.untyped_storage().data_ptr()] = views[name]
    rows = []
    for constant in generated.constants:
        tensor = constant.tensor
        source = owners.get(tensor.untyped_storage().data_ptr()) or views.get(constant.fqn)
        if source is None:
            raise DriverError(
                f"{manifest.label}: Inductor made a constant of its own ({constant.symbol}: "
                f"{tensor.dtype}{list(tensor.shape)}), which the weights file doesn't hold"
            )
        rows.append(
            ProgramConstant(
                symbol=constant.symbol,
                source=source,
                dtype=dtype_name(tensor.dtype, constant.symbol),
                shape=tuple(tensor.shape),
                stride=tuple(tensor.stride()),
                offset=int(tensor.storage_offset()),
            )
        )
    return tuple(rows)


def _refuse_operators(refused: Mapping[str, str], label: str) -> None:
    if refused:
        reasons = "".join(f"\n  {name}: {reason}" for name, reason in sorted(refused.items()))
        raise DriverError(
            f"{label}: operators that compiled code can't call:{reasons}\n"
            "Replace them in forward(), or name them in torch_export's decompositions so that "
            "they are written in simpler ones"
        )
