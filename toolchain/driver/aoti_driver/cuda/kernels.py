"""Compiles the Triton kernels that Inductor writes, for every architecture."""

from __future__ import annotations

import ast
import dataclasses
import importlib
from collections.abc import Sequence
from typing import Any

from aoti_driver.base.errors import DriverError
from aoti_driver.contract.tiles import Tile
from aoti_driver.cuda import archs, index_checks, pretended_device, tiled_kernels
from aoti_driver.cuda.images import Image, Kernel


@dataclasses.dataclass(frozen=True)
class Compiled:
    """A kernel with what a launch of it must know; of a product with several tiles, one for each.

    launch: as Inductor keeps it of a kernel that it launched. plan: of a product.
    """

    kernels: tuple[Kernel, ...]
    launch: dict[str, Any]
    plan: tiled_kernels.Plan | None


def compile_kernel(name: str, definition: str, targets: Sequence[archs.Arch]) -> Compiled:
    """definition: the Python text that Inductor defines the kernel with; targets: lowest first.

    All architectures get the same program: the kernel's first configuration.
    """
    heuristics: Any = importlib.import_module("torch._inductor.runtime.triton_heuristics")

    function, source = _defined(definition)
    tuner = _tuner(function, source)
    config = tuner.configs[0]
    meta = tuner._create_compile_meta(config)
    plan = tiled_kernels.plan_of(tuner.inductor_meta.get("config_args", {}))
    built = [_build(tuner, targets)]
    if plan is not None:
        for tile in plan.tiles[1:]:
            built.append(_build(_tuner(function, tiled_kernels.source_for(source, tile)), targets))
        for tile, each in zip(plan.tiles, built, strict=True):
            _check_shared_memory(each.kernel, plan.key, tile, targets)
    inductor_meta = {**tuner.inductor_meta, "kernel_name": name}
    if plan is not None and plan.has_choice:
        inductor_meta |= tiled_kernels.launch(plan)
    launcher = heuristics.TritonCompileResult(built[0].lowest, config, meta, inductor_meta)
    constexprs = heuristics.get_constexprs(tuner.fn)
    call, definition_args, absent = launcher._get_arg_lists(tuner.fn.arg_names, constexprs)
    chosen = heuristics.config_to_dict(config)
    signature = meta["signature"]
    launch = {
        "config": chosen,
        "inductor_meta": inductor_meta,
        "triton_meta": tuner.triton_meta,
        "def_args": [argument for argument in definition_args if argument not in chosen],
        "call_args": [
            argument
            for argument in call
            if signature.get(argument, "constexpr") != "constexpr" and argument not in absent
        ],
        **{
            name: max(getattr(each.lowest.metadata, f"{name}_size") for each in built)
            for name in ("global_scratch", "profile_scratch")
        },
    }
    return Compiled(tuple(each.kernel for each in built), launch, plan)


@dataclasses.dataclass(frozen=True)
class _Built:
    """lowest: what Triton made for the lowest architecture."""

    kernel: Kernel
    lowest: Any


def _build(tuner: Any, targets: Sequence[archs.Arch]) -> _Built:
    config = tuner.configs[0]
    meta = tuner._create_compile_meta(config)
    images: list[Image] = []
    ptx: Image | None = None
    lowest: Any = None
    for arch in targets:
        binary = compile_binary(tuner, config, meta, arch)
        threads = 32 * binary.metadata.num_warps
        shared = binary.metadata.shared
        images.append(Image(arch.capability, False, binary.asm["cubin"], shared, threads))
        if lowest is None:
            lowest = binary
            if arch.capability <= archs.PORTABLE_PTX:
                text = binary.asm["ptx"].encode()
                ptx = Image(arch.capability, True, text, shared, threads)
    symbol = lowest.metadata.name
    reports = index_checks.POINTER in meta["signature"]
    kernel = Kernel(symbol, (*images, *([ptx] if ptx else [])), reports)
    return _Built(kernel, lowest)


def _check_shared_memory(
    kernel: Kernel, key: str, tile: Tile, targets: Sequence[archs.Arch]
) -> None:
    """Triton's need is known only now; without the check, the launch would fail."""
    for arch in targets:
        for image in kernel.images:
            if image.arch == arch.capability and image.shared_bytes > arch.shared_bytes:
                raise DriverError(
                    f"{key}: a block of {tile} needs {image.shared_bytes} bytes of shared memory "
                    f"for {arch.name}, which has {arch.shared_bytes}. In a tuning file, use a "
                    f"smaller tile or fewer stages, or leave {arch.name} out of cuda_archs"
                )


def _defined(definition: str) -> tuple[str, str]:
    """The function's name and the source of its module.

    definition: ``async_compile.triton(NAME, SOURCE, ...)``, a call with plain texts.
    """
    (call,) = (node for node in ast.walk(ast.parse(definition)) if isinstance(node, ast.Call))
    name, source = (ast.literal_eval(argument) for argument in call.args)
    return name, source


def _tuner(function: str, source: str) -> Any:
    """The object that Inductor tunes and launches a kernel with."""
    from torch._inductor.codecache import PyCodeCache

    return getattr(PyCodeCache.load(source), function)


def compile_binary(tuner: Any, config: Any, meta: dict[str, Any], arch: archs.Arch) -> Any:
    """What Triton makes of one configuration for one architecture."""
    triton = importlib.import_module("triton")
    compiler = importlib.import_module("triton.backends.compiler")
    source = triton.compiler.ASTSource(
        tuner.fn, meta["signature"], meta["constants"], meta["configs"][0]
    )
    options = tuner._create_compile_options(config, meta)
    with pretended_device.compiling_for(arch):
        return triton.compile(
            source, target=compiler.GPUTarget("cuda", arch.capability, 32), options=options
        )
