"""Compiles a kernel for every architecture, on a machine without a GPU."""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Mapping, Sequence
from typing import Any

from aoti_driver.base import environment
from aoti_driver.base.errors import DriverError
from aoti_driver.cuda import archs, pretended_device
from aoti_driver.cuda.images import Image, Kernel
from aoti_driver.triton_kernel.parameters import Parameters


@dataclasses.dataclass(frozen=True)
class Options:
    num_warps: int
    num_stages: int


def compile_kernel(
    function: Any,
    parameters: Parameters,
    options: Options,
    targets: Sequence[archs.Arch],
    where: str,
) -> Kernel:
    """targets: lowest first; where: begins every error."""
    images: list[Image] = []
    last: list[Image] = []
    symbol = ""
    for arch in targets:
        binary = _compile(function, parameters, options, arch, where)
        metadata = binary.metadata
        symbol = metadata.name
        image = Image(
            arch.capability, False, binary.asm["cubin"], metadata.shared, 32 * metadata.num_warps
        )
        check(metadata, arch, where)
        images.append(image)
        if arch is targets[0] and arch.capability <= archs.PORTABLE_PTX:
            text = binary.asm["ptx"].encode()
            last.append(dataclasses.replace(image, is_ptx=True, data=text))
    return Kernel(symbol, (*images, *last))


def _compile(
    function: Any, parameters: Parameters, options: Options, arch: archs.Arch, where: str
) -> Any:
    triton = importlib.import_module("triton")
    compiler = importlib.import_module("triton.backends.compiler")
    types: Mapping[str, str] = {each.name: each.triton for each in parameters.launched}
    source = triton.compiler.ASTSource(
        function,
        {name: types.get(name, "constexpr") for name in function.arg_names},
        dict(parameters.constants),
        {
            (function.arg_names.index(each.name),): [["tt.divisibility", 16]]
            for each in parameters.launched
            if each.divisible_by_16
        },
    )
    try:
        with (
            environment.changed("TRITON_DISABLE_LINE_INFO", "1"),
            pretended_device.compiling_for(arch),
        ):
            return triton.compile(
                source,
                target=compiler.GPUTarget("cuda", arch.capability, 32),
                options=dataclasses.asdict(options),
            )
    except Exception as e:
        raise DriverError(f"{where}: Triton can't compile it for {arch.name}: {e}") from None


def check(metadata: Any, arch: archs.Arch, where: str) -> None:
    """Refuses a compiled kernel that needs what the launcher or the GPU doesn't have."""
    if metadata.shared > arch.shared_bytes:
        raise DriverError(
            f"{where}: a block needs {metadata.shared} bytes of shared memory, and {arch.name} has "
            f"{arch.shared_bytes}; use smaller tiles (constants) or a smaller num_stages, or leave "
            f"{arch.name} out of cuda_archs"
        )
    if metadata.global_scratch_size or metadata.profile_scratch_size:
        raise DriverError(
            f"{where}: Triton gives it memory of its own on the device for {arch.name}, as tensor "
            "descriptors that the kernel makes need; the launcher has none. Use pointers instead "
            "(tl.load, tl.store)"
        )
