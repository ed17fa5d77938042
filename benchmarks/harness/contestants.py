"""The contestants, and how each is started."""

from __future__ import annotations

import dataclasses
import importlib.util
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.harness.config import Model

COMPILED = ("slim-v4", "slim-v3", "libtorch-v4", "libtorch-v3")
# Contestant -> its program here, the packages that it needs, and what `prepare` makes for it.
PYTHON = {
    "eager": ("eager", ("torch", "numpy"), "module"),
    "compile": ("compiled", ("torch", "numpy"), "module"),
    "onnxruntime": ("onnx_runtime", ("onnxruntime", "numpy"), "onnx"),
    "openvino": ("open_vino", ("openvino", "numpy"), "openvino"),
    "llama.cpp": ("llama", ("llama_cpp_python", "numpy"), "gguf"),
}
# The same for those on a GPU, in the interpreter that the user names.
CUDA_PYTHON = {
    "eager-cuda": "cuda_eager",
    "compile-cuda": "cuda_compiled",
    "compile-graphs-cuda": "cuda_compiled_graphs",
}
# Imports from the repository alone: PYTHONPATH has packages for the interpreter of this program.
_RUN = (
    "import runpy, sys; sys.path[0] = sys.argv[1]; del sys.argv[:2]; "
    "runpy.run_path(sys.argv[0], run_name='__main__')"
)
FLAGS = {"cuda-graphs": ["--cuda-graphs"]}
# Their first call compiles, so it tells nothing about later ones.
COMPILE_IN_CALLS = ("compile", "compile-cuda", "compile-graphs-cuda")
IMPORTS = {"onnxruntime": "onnxruntime", "openvino": "openvino", "llama.cpp": "llama_cpp"}


@dataclasses.dataclass(frozen=True)
class Setting:
    """Where things are on this machine."""

    root: Path  # the folder that `benchmarks` and `models` are imported from
    cache: Path
    runfiles: Mapping[str, str]  # variables by which programs find their runfiles
    level: str  # of the CPU
    launcher: str
    cuda_python: str = ""  # an interpreter with a torch for CUDA


def chosen(
    names: Iterable[str], wanted: Sequence[str], descriptions: Sequence[dict[str, Any]], level: str
) -> list[str]:
    """Who takes part: those that the user wants, or all that the models are built for.

    level: of the CPU. Ends the program where no model is built for it.
    """
    built = {runner.rpartition("-")[2] for d in descriptions for runner in d["runners"]}
    for d in descriptions:
        built &= {runner.rpartition("-")[2] for runner in d["runners"]}
    if built == {"v4"} and level != "x86-64-v4":
        sys.exit(
            "this CPU has no AVX-512, and the models are built for it: run this with "
            "--//benchmarks:levels=v3"
        )
    return [
        name
        for name in names
        if (name in wanted if wanted else name not in COMPILED or name.rpartition("-")[2] in built)
    ]


def environment(setting: Setting, threads: int, model: Model | None = None) -> dict[str, str]:
    """The same variables for every contestant."""
    variables = {
        name: os.environ[name] for name in ("PATH", "HOME", "TMPDIR") if name in os.environ
    }
    variables |= dict(setting.runfiles)
    own = str(Path(__file__).parent)  # its modules have common names
    paths = [str(setting.root), *(path for path in sys.path if path and path != own)]
    variables |= {
        "OMP_NUM_THREADS": str(threads),
        "MKL_NUM_THREADS": str(threads),
        "PYTHONPATH": os.pathsep.join(paths),
        "PYTHONDONTWRITEBYTECODE": "1",
        "TORCHINDUCTOR_CACHE_DIR": str(setting.cache / "inductor"),
        "TORCHINDUCTOR_COMPILE_THREADS": "1",
    }
    if model and model.capability:
        variables["ATEN_CPU_CAPABILITY"] = model.capability
    return variables


def command(
    contestant: str, setting: Setting, model: Model, folder: Path, threads: int, callers: int = 1
) -> list[str]:
    """The program of a contestant that takes commands; `threads` are those of a call."""
    if contestant in model.runners:
        flags = [f"--threads={threads}", f"--callers={callers}", *FLAGS.get(contestant, [])]
        return [model.runners[contestant], *flags]
    peers = setting.root / "benchmarks/peers"
    if contestant in CUDA_PYTHON:
        script = str(peers / f"{CUDA_PYTHON[contestant]}.py")
        program = [setting.cuda_python, "-E", "-s", "-c", _RUN, str(setting.root), script]
    else:
        program = [sys.executable, "-s", "-P", str(peers / f"{PYTHON[contestant][0]}.py")]
    return [
        *program,
        *("--model", str(folder / "model.json"), "--files", str(folder)),
        *("--threads", str(threads), "--callers", str(callers)),
    ]


def start_command(
    contestant: str, setting: Setting, model: Model, folder: Path, threads: int
) -> list[str]:
    """The program of a contestant that makes one call."""
    inputs = str(folder / f"{model.start}.safetensors")
    program = command(contestant, setting, model, folder, threads)
    if contestant in model.runners:
        return [*program, f"--start={inputs}"]
    return [*program, "--start-case", model.start, inputs]


def why_not(contestant: str, setting: Setting, model: Model, problems: Mapping[str, str]) -> str:
    """Why a contestant can't take part; empty if it can. `problems`: of the steps of `prepare`."""
    if contestant in model.without:
        return model.without[contestant]
    if contestant in model.runners:
        lacking = contestant.endswith("v4") and setting.level != "x86-64-v4"
        return "this CPU has no AVX-512" if lacking else ""
    if contestant in COMPILED:
        level = contestant.rpartition("-")[2]
        return f"not built: --//benchmarks:levels=all or {level} does that"
    if contestant in CUDA_PYTHON and not setting.cuda_python:
        return "no interpreter with a torch for CUDA: give one as --python"
    module = IMPORTS.get(contestant)
    if module and importlib.util.find_spec(module) is None:
        return f"{module} is not installed"
    for step in steps_for([contestant]):
        if problems.get(step):
            return problems[step]
    return ""


def steps_for(contestants: Sequence[str]) -> list[str]:
    """The steps of `prepare` that contestants need, in order."""
    steps = {"module"}
    for contestant in contestants:
        if contestant in PYTHON:
            steps.add(PYTHON[contestant][2])
    if "openvino" in steps:
        steps.add("onnx")
    return [step for step in ("module", "onnx", "openvino", "gguf") if step in steps]


def rounds_by_itself(contestant: str, model: Model) -> bool:
    """Whether a contestant's weights are other than the model's, as they are rounded otherwise."""
    return contestant == "llama.cpp" and model.gguf != "F32"
