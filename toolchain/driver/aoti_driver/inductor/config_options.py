"""Inductor's options: those that users may set, and those that the driver sets."""

from __future__ import annotations

import ast
import contextlib
import json
import os
from collections.abc import Mapping
from typing import Any, TypeAlias

import torch

from aoti_driver.base.errors import DriverError, did_you_mean

# The values that JSON can represent.
OptionValue: TypeAlias = bool | int | float | str | list[Any] | dict[str, Any] | None
Options: TypeAlias = Mapping[str, OptionValue]

# Options that users may change.
DEFAULTS: Options = {"fallback_random": True}
# Options that only the driver sets; see decided_options.
_RESERVED = ("aot_inductor.", "cpp.simdlen", "cpp.dynamic_threads", "cpp.march", "freezing")
# Options with which Inductor chooses by measured time.
_TIMED = (
    "max_autotune",
    "max_autotune_gemm",
    "max_autotune_pointwise",
    "coordinate_descent_tuning",
    "benchmark_fusion",
    "benchmark_epilogue_fusion",
    "benchmark_combo_kernel",
)


def decided_options(suffix: str, scratch: str, call_spec: tuple[str, str]) -> dict[str, Any]:
    """torch_internals/changes.py says why each."""
    return {
        "aot_inductor.package": True,
        "aot_inductor.output_path": os.path.join(scratch, "out"),
        "aot_inductor.dynamic_linkage": False,
        "aot_inductor.model_name_for_generated_files": suffix,
        "aot_inductor.package_constants_in_so": False,
        "aot_inductor.package_constants_on_disk_format": "binary_blob",
        "aot_inductor.precompile_headers": False,
        "aot_inductor.serialized_in_spec": call_spec[0],
        "aot_inductor.serialized_out_spec": call_spec[1],
        "always_keep_tensor_constants": True,
        "cpp.dynamic_threads": True,
        "freezing": False,
        "compile_threads": 1,
        "force_disable_caches": True,
    }


def parse_options(texts: Mapping[str, str], label: str) -> Options:
    """The values of the attribute ``options``.

    DriverError for options that Inductor does not know, or that users may not change.
    """
    options = {name: _value(text) for name, text in texts.items()}
    _check(options, label)
    return options


def _value(text: str) -> OptionValue:
    """JSON, or else what Python calls it (``True``), or else the text itself (``CPP,ATEN``)."""
    with contextlib.suppress(ValueError, RecursionError):
        value: OptionValue = json.loads(text)
        return value
    # Such as a set, which JSON can't say and the manifest can't keep: then it is a text.
    with contextlib.suppress(ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        value = json.loads(json.dumps(ast.literal_eval(text)))
        return value
    return text


def _check(options: Options, label: str) -> None:
    from torch._inductor import config

    known = config.get_config_copy()
    for name, value in options.items():
        if name in _TIMED and value:
            raise DriverError(
                f'{label}: options: "{name}" makes Inductor compile several kernels and time them '
                "on the machine that builds, which gives other code in each build, and packs "
                "weights into the code. Leave it out: the slim runtime has matrix products and "
                "convolutions for each CPU, and the build packs their weights."
            )
        if name == "cpp.enable_kernel_profile" and value:
            raise DriverError(
                f'{label}: options: "{name}" writes calls of PyTorch\'s profiler into the code, '
                "which the rules don't support. Leave it out: a profiler such as perf shows each "
                "kernel by its name, in a binary that is not stripped."
            )
        if name.startswith(_RESERVED):
            raise DriverError(
                f'{label}: options: "{name}" is set by the rules and can\'t be changed'
            )
        if name not in known:
            raise DriverError(
                f'{label}: options: Inductor has no option "{name}"{did_you_mean(name, known)}; '
                f"the options are those of torch._inductor.config in torch {torch.__version__}"
            )
