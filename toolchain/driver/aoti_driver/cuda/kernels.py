"""Compiles the Triton kernels that Inductor writes, for every architecture."""

from __future__ import annotations

import ast
import dataclasses
import importlib
from collections.abc import Sequence
from typing import Any

from aoti_driver.cuda import archs, index_checks, pretended_device
from aoti_driver.cuda.images import Image, Kernel


@dataclasses.dataclass(frozen=True)
class Compiled:
    """A kernel with what a launch of it must know.

    launch: as Inductor keeps it of a kernel that it launched. scratch_bytes: of a block.
    """

    kernel: Kernel
    launch: dict[str, Any]


def compile_kernel(name: str, source: str, targets: Sequence[archs.Arch]) -> Compiled:
    """source: the Python text that Inductor defines the kernel with; targets: lowest first.

    All architectures get the same program: the kernel's first configuration.
    """
    heuristics: Any = importlib.import_module("torch._inductor.runtime.triton_heuristics")

    tuner = _tuner(source)
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
    launcher = heuristics.TritonCompileResult(lowest, config, meta, tuner.inductor_meta)
    constexprs = heuristics.get_constexprs(tuner.fn)
    call, definition, absent = launcher._get_arg_lists(tuner.fn.arg_names, constexprs)
    chosen = heuristics.config_to_dict(config)
    signature = meta["signature"]
    launch = {
        "config": chosen,
        "inductor_meta": {**tuner.inductor_meta, "kernel_name": name},
        "triton_meta": tuner.triton_meta,
        "def_args": [argument for argument in definition if argument not in chosen],
        "call_args": [
            argument
            for argument in call
            if signature.get(argument, "constexpr") != "constexpr" and argument not in absent
        ],
        "global_scratch": lowest.metadata.global_scratch_size,
        "profile_scratch": lowest.metadata.profile_scratch_size,
    }
    symbol = lowest.metadata.name
    reports = index_checks.POINTER in signature
    return Compiled(Kernel(symbol, (*images, *([ptx] if ptx else [])), reports), launch)


def _tuner(definition: str) -> Any:
    """The object that Inductor tunes and launches a kernel with.

    definition: ``async_compile.triton(NAME, SOURCE, ...)``, a call with plain texts.
    """
    from torch._inductor.codecache import PyCodeCache

    (call,) = (node for node in ast.walk(ast.parse(definition)) if isinstance(node, ast.Call))
    name, source = (ast.literal_eval(argument) for argument in call.args)
    return getattr(PyCodeCache.load(source), name)


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
