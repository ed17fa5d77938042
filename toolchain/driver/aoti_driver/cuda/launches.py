"""Makes Inductor write launches through the runtime, and keeps the kernels that they launch.

Inductor would write code that loads each kernel's file and calls the CUDA libraries.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

from aoti_driver.contract.tiles import ProductTiles
from aoti_driver.cuda import index_checks, kernels, tiled_kernels
from aoti_driver.cuda.archs import Arch
from aoti_driver.cuda.images import Kernel
from aoti_driver.torch_internals import patching

_GPU = "torch._inductor.codegen.cpp_wrapper_gpu"
_WRAPPER = "torch._inductor.codegen.wrapper"
_CPU = "torch._inductor.codegen.cpp_wrapper_cpu"
_OVERRIDES = "torch._inductor.codegen.cuda.device_op_overrides"

# How Triton writes the types of numbers that are no integers.
_FLOATS = ("fp32", "fp64")

# Generated code uses these names of NVIDIA's headers. Of launchKernel's arguments, the table has
# the number of warps and the shared memory.
_HELPERS = """
namespace {
using CUdeviceptr = std::uint64_t;
using CUfunction = void*;
using cudaStream_t = void*;

// The runtime has made the device and the stream current.
struct AOTICudaStreamGuard {
  AOTICudaStreamGuard(cudaStream_t, std::int32_t) {}
};

[[maybe_unused]] void launchKernel(std::uint32_t kernel, std::uint32_t x, std::uint32_t y,
                                   std::uint32_t z, int, int, void** arguments,
                                   cudaStream_t stream) {
  ::aoti::cuda::Launch(kKernelTable, kernel, x, y, z, arguments, stream);
}

// Where kernels report an index out of range.
struct IndexStatus {
  void* data_ptr() const { return ::aoti::cuda::IndexStatus(); }
};
[[maybe_unused]] constexpr IndexStatus %s;
}  // namespace
"""

_MEASURED = """
#include "runtime/cuda/measuring.h"

namespace {
[[maybe_unused]] void launchKernel(std::uint32_t kernel, std::uint32_t product, std::int64_t rows,
                                   bool repeats, std::uint32_t x, std::uint32_t y, std::uint32_t z,
                                   int, int, void** arguments, cudaStream_t stream) {
  ::aoti::cuda::LaunchMeasured(kKernelTable, kernel, product, rows, repeats, x, y, z, arguments,
                               stream);
}
}  // namespace
"""


@dataclasses.dataclass(frozen=True)
class Launched:
    """kernels: in the order of their numbers in the generated code. products: with theirs."""

    kernels: list[Kernel] = dataclasses.field(default_factory=list)
    products: list[ProductTiles] = dataclasses.field(default_factory=list)


@contextlib.contextmanager
def through_the_runtime(targets: Sequence[Arch], measured: bool) -> Iterator[Launched]:
    """Yields what is launched, which is added while the code is generated.

    measured: the launches of products are timed (runtime/cuda/measuring.h).
    """
    found = Launched()
    numbers: dict[str, str] = {}
    place = f"{_GPU}:DeferredTritonCallWrapper"
    generate = patching.original(f"{place}.generate")
    launch = patching.original(f"{place}.generate_launch_kernel")
    parameter = patching.original(f"{place}._get_cpp_param_type")
    floats: dict[str, set[str]] = {}
    cache = "torch._inductor.codecache:CudaKernelParamCache.cache"

    def compile_and_generate(call: Any, wrapper: Any) -> None:
        name = call.kernel_name
        compiled = kernels.compile_kernel(name, call.kernel_name_to_body[name], targets)
        types = compiled.launch["triton_meta"]["signature"]
        number = len(found.kernels)
        found.kernels.extend(compiled.kernels)
        kernel_numbers = [str(number + offset) for offset in range(len(compiled.kernels))]
        numbers[name] = kernel_numbers[0]
        if (plan := compiled.plan) is not None:
            numbers[name] = tiled_kernels.chosen(plan, kernel_numbers)
            if plan.measured:
                # What it writes may be what it reads: then it runs once.
                in_place = any(name.startswith("in_out_ptr") for name in types)
                numbers[name] += f", {number}, _rows, {str(not in_place).lower()}"
            found.products.append(ProductTiles(plan.key, number, plan.tiles, plan.tuned))
        floats[name] = {argument for argument, kind in types.items() if kind in _FLOATS}
        with patching.entries_kept(cache, [name]) as table:
            table[name] = {**compiled.launch, "num_warps": 0, "shared_mem": 0}
            # Inductor would write the kernel's source as a comment, many times as long as the code.
            generate(dataclasses.replace(call, kernel_name_to_body={name: ""}), wrapper)

    def launch_by_number(call: Any, prefix: Any, wrapper: Any, _: str, params: Any) -> None:
        launch(call, prefix, wrapper, numbers[call.kernel_name], params)

    def typed_parameter(call: Any, name: str, *args: Any) -> str:
        # Inductor would pass a number that varies as an int64_t, which cuts off its fraction.
        if name in floats[call.kernel_name]:
            return f"double {name}"
        return str(parameter(call, name, *args))

    with patching.replaced(
        {
            f"{place}._get_cpp_param_type": typed_parameter,
            f"{place}.generate": compile_and_generate,
            f"{place}.generate_load_kernel": _nothing,
            f"{place}.generate_launch_kernel": launch_by_number,
            f"{_WRAPPER}:PythonWrapperCodegen.generate_and_run_autotune_block": _nothing,
            f"{_CPU}:CppWrapperCpu.get_device_include_path_aot": staticmethod(_include),
            f"{_OVERRIDES}:CUDADeviceOpOverrides.kernel_driver": lambda _: (
                _HELPERS % index_checks.STATUS + (_MEASURED if measured else "")
            ),
        }
    ):
        yield found


def _nothing(*_: object) -> None:
    pass


def _include(_: str) -> str:
    """Torch's header for CUDA needs NVIDIA's."""
    return (
        "#include <torch/csrc/inductor/aoti_include/cpu.h>\n"
        "#include <torch/csrc/inductor/aoti_torch/generated/c_shim_cuda.h>"
    )
