"""A CUDA device for PyTorch, Inductor and Triton to ask, on a machine without one.

They ask for its properties while they generate code. Nothing runs on it: the program's tensors are
fake ones.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import os
import types
from collections.abc import Callable, Iterator

import torch

from aoti_driver.cuda.archs import Arch
from aoti_driver.torch_internals import patching

_INTERFACE = "torch._dynamo.device_interface:CudaInterface"

# Modules with functions that remember what they were told.
_CACHED = (
    "torch.utils._triton",
    "torch._inductor.utils",
    "torch._inductor.runtime.hints",
    "torch._subclasses.fake_tensor",
)


@contextlib.contextmanager
def pretended(arch: Arch) -> Iterator[None]:
    """One device of the architecture is there inside the block."""
    properties = types.SimpleNamespace(
        name=arch.name,
        major=arch.capability // 10,
        minor=arch.capability % 10,
        multi_processor_count=arch.multiprocessors,
        total_memory=16 << 30,
        regs_per_multiprocessor=65536,
        max_threads_per_multi_processor=arch.threads,
        max_threads_per_block=1024,
        warp_size=32,
        shared_memory_per_block=49152,
        shared_memory_per_block_optin=arch.shared_bytes,
        shared_memory_per_multiprocessor=arch.shared_bytes + 1024,
        L2_cache_size=32 << 20,
        clock_rate=1_400_000,
        memory_clock_rate=1_600_000,
        memory_bus_width=5120,
        gcnArchName="",
    )
    values: dict[str, object] = {
        "torch.cuda:is_available": _always(True),
        "torch.cuda:_exchange_device": _always(0),
        "torch.cuda:_maybe_exchange_device": _always(0),
        "torch.cuda:get_rng_state": lambda *_: torch.zeros(16, dtype=torch.uint8),
        "torch.cuda:get_device_properties": _always(properties),
        "torch.cuda:is_bf16_supported": _always(arch.capability >= 80),
        "torch._inductor.runtime.triton_helpers:set_driver_to_gpu": _always(None),
        "torch._inductor.fx_passes.joint_graph:lazy_init": _always(None),
        f"{_INTERFACE}.is_bf16_supported": staticmethod(_always(arch.capability >= 80)),
        f"{_INTERFACE}.get_device_properties": staticmethod(_always(properties)),
        f"{_INTERFACE}.Worker.get_device_properties": staticmethod(_always(properties)),
    }
    with contextlib.ExitStack() as stack:
        _forget_answers()
        stack.callback(_forget_answers)
        stack.enter_context(patching.replaced(values))
        stack.enter_context(_guard_of_no_device())
        stack.enter_context(compiling_for(arch))
        yield


def _always(value: object) -> Callable[..., object]:
    return lambda *_, **__: value


def _forget_answers() -> None:
    """Clears what was asked before, such as whether Triton has a device."""
    for name in _CACHED:
        module = importlib.import_module(name)
        for value in list(vars(module).values()):
            clear = getattr(value, "cache_clear", None)
            if clear is not None and getattr(value, "__module__", None) == name:
                clear()
    importlib.import_module("torch._inductor.runtime.hints").DeviceProperties.create.cache_clear()


@contextlib.contextmanager
def _guard_of_no_device() -> Iterator[None]:
    """Lets PyTorch's C++ switch to the device, which does nothing.

    It has a list of objects that switch to a device of each type; that of a build without CUDA
    has none for it. The one for "meta" does nothing.
    """
    libraries = os.path.join(os.path.dirname(str(torch.__file__)), "lib")
    library = ctypes.CDLL(os.path.join(libraries, "libc10.so"))
    guards = (ctypes.c_void_p * 20).in_dll(library, "_ZN3c104impl26device_guard_impl_registryE")
    cuda, meta = 1, 14
    before = guards[cuda]
    if before is None:
        guards[cuda] = guards[meta]
    try:
        yield
    finally:
        guards[cuda] = before


@contextlib.contextmanager
def compiling_for(arch: Arch) -> Iterator[None]:
    """Makes Triton's compiler find a driver for the architecture, which loads nothing."""
    from triton.backends.compiler import GPUTarget
    from triton.runtime import driver as drivers

    limits = {
        "max_shared_mem": arch.shared_bytes,
        "max_num_regs": 65536,
        "multiprocessor_count": arch.multiprocessors,
        "warpSize": 32,
    }
    before = vars(drivers)["_active"]
    drivers.set_active(
        types.SimpleNamespace(
            utils=types.SimpleNamespace(get_device_properties=_always(limits)),
            get_current_target=_always(GPUTarget("cuda", arch.capability, 32)),
            get_current_device=_always(0),
            get_current_stream=_always(0),
            set_current_device=_always(None),
            get_active_torch_device=_always(torch.device("cuda", 0)),
            get_device_interface=_always(torch.cuda),
            get_benchmarker=_always(None),
        )
    )
    try:
        yield
    finally:
        drivers.set_active(before)
