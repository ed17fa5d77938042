"""The type stub of a model's Python module."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence

from aoti_driver.bindings import pymodule
from aoti_driver.bindings.model import Input, Model
from aoti_driver.bindings.pymodule import docstring
from aoti_driver.bindings.results import PythonResult
from aoti_driver.bindings.text import substitute

# What the stubs of all modules have, from their beginning to the classes of the results.
BEGINNING = '''\
"""@DOC@
"""

import os
from typing import @TYPING@

import numpy
import numpy.typing

class SupportsDLPack(Protocol):
    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...

# A NumPy array, a tensor of torch or any other DLPack library, or an object with a buffer.
TensorLike = numpy.typing.NDArray[Any] | SupportsDLPack | memoryview | bytes | bytearray

class Error(RuntimeError):
    """An error of the model. `code` names the cause, such as "WeightsNotFound"."""

    code: str

class InputError(Error, ValueError):
    """An input that the model does not accept. The model was not run."""

@final
class Tensor:
    """An output whose element type NumPy lacks: take it with your library's from_dlpack()."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> str: ...
    def __dlpack__(
        self,
        *,
        stream: int | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...
    def __array__(
        self, dtype: Any = None, copy: bool | None = None
    ) -> numpy.typing.NDArray[numpy.float32]: ...

@OUTPUTS@
'''

_MODEL = '''
@final
class Model:
    """A loaded model, made by load() alone. Thread safe; calls release the GIL."""

@CALL@@SESSION@@COMMON@@SESSIONS@
__program__: str
__provenance__: dict[str, Any]
inputs: dict[str, str]
outputs: dict[str, str]
dims: dict[str, tuple[int, int]]
'''

SESSION = '''\
    def session(self) -> Session:
        """A new state, which begins with the values of the weights file."""
'''

_SESSIONS = '''
@final
class Session:
    """A state of its own over a loaded model, made by Model.session() and fork(). Thread safe;
    calls of one session run one after the other."""

{calls}\
    def fork(self) -> Session:
        """Another session with the values that this one has; they are copied when one runs."""
    def reset(self) -> None:
        """Gives the state the values of the weights file."""
    def save(self) -> bytes:
        """The state as the bytes of a safetensors file."""
    def load(self, saved: bytes | bytearray | memoryview) -> None:
        """Replaces the state by one that save() returned."""
'''

COMMON = '''\
    def swap_weights(
        self,
        weights: str | os.PathLike[str] | None = None,
        copy_weights: bool = False,
        adapter: str | os.PathLike[str] | None = None,
    ) -> None:
        """Replaces the weights (None: by those built with the model), also while calls run. The
        tensors of the adapter take the place of those of the weights.
        """
    def manual_seed(self, seed: int) -> None:
        """Seeds the random operators of all models on the slim runtime."""
'''

_WITH_OPTIONS = '''\
    def with_options(self, *, cuda_stream: int = 0, outputs_on_device: bool = False) -> Model:
        """A Model whose calls on CUDA run with these options, on the same weights and state: the
        caller's stream, and whether outputs stay in the GPU's memory.
        """
'''

LOAD = '''
def load(
    weights: str | os.PathLike[str] | None = None,
    num_runners: int | None = None,
    check_values: bool = True,
    threads: int = 0,
    copy_weights: bool = False,
    adapter: str | os.PathLike[str] | None = None,
    cuda_device: int = 0,
@DEVICE@    cuda_graphs: bool = False,
) -> Model:
    """Maps the weights (default: those built with the model) and prepares the program. The tensors
    of the adapter take the place of those of the weights. A model for CUDA runs on the GPU with
    this number; with cuda_graphs, it records its kernels as CUDA graphs.
@DEVICE_DOC@    """
'''


def generate(model: Model) -> str:
    result = PythonResult(model)
    call = definition("__call__", arguments(model), result.annotation) + with_options([model])
    return substitute(
        BEGINNING + _MODEL + LOAD,
        {
            "DOC": docstring_text(docstring(model)),
            "TYPING": typing_names([model], [result]),
            "OUTPUTS": "\n\n".join(result.definitions),
            "CALL": call,
            "COMMON": COMMON,
            "SESSION": SESSION if model.has_state else "",
            "SESSIONS": sessions(call) if model.has_state else "",
            **load_device(model),
        },
    )


def with_options(models: Sequence[Model]) -> str:
    """Models for the CPU alone ignore the options, and are typed without."""
    return _WITH_OPTIONS if any(model.on_cuda for model in models) else ""


def sessions(calls: str) -> str:
    """The class of the sessions, which has the calls of the model."""
    return _SESSIONS.format(calls=calls)


def docstring_text(lines: Iterable[str]) -> str:
    """What stands between the quotes."""
    return "\n".join(lines).replace("\\", "\\\\").replace('"""', "'''")


def definition(name: str, parameters: Sequence[str], result: str, doc: str = "") -> str:
    """A method of a class, which may be called with each of several lists of parameters."""
    overload = "    @overload\n" if len(parameters) > 1 else ""
    body = f'\n        """{doc}\n        """\n' if doc else " ...\n"
    return "".join(f"{overload}    def {name}({p}) -> {result}:{body}" for p in parameters)


def arguments(model: Model) -> list[str]:
    """The lists of parameters of a call."""
    return parameters([(i.tensor.path, _argument(i)) for i in model.inputs])


def parameters(inputs: Sequence[tuple[str, str]]) -> list[str]:
    """The inputs (paths and texts) as a list; and one with each structure in place of its parts."""
    whole = []
    for path, text in inputs:
        name = re.split(r"[.[]", path)[0]
        default = " = None" if text.endswith("= None") else ""
        whole.append(text if name == path else f"{name}: Any{default}")
    lists = ["self", *(text for _, text in inputs)], ["self", *dict.fromkeys(whole)]
    return list(dict.fromkeys(map(", ".join, lists)))


def typing_names(
    models: Sequence[Model], results: Iterable[PythonResult], values: Collection[str] = ()
) -> str:
    """What the stub imports of typing; values: more types of arguments than the inputs have."""
    dicts = ["TypedDict"] if any(result.typed_dicts for result in results) else []
    inputs = [item for model in models for item in model.inputs]
    kinds = {item.tensor.number for item in inputs} | {*values}
    overload = ["overload"] if pymodule.path_array([i.tensor.path for i in inputs]) else []
    floats = ["SupportsFloat"] if "float" in kinds else []
    ints = ["SupportsIndex"] if "int" in kinds else []
    literal = ["Literal"] if any(model.on_cuda for model in models) else []
    return ", ".join(
        ["Any", *literal, "NamedTuple", "Protocol", *floats, *ints, *dicts, "final", *overload]
    )


def load_device(model: Model) -> dict[str, str]:
    """The argument of load() that chooses a device; models for the CPU alone are typed without."""
    devices = model.library.devices
    if "cuda" not in devices:
        return {"DEVICE": "", "DEVICE_DOC": ""}
    names = ", ".join(f'"{device}"' for device in devices)
    return {
        "DEVICE": f"    device: Literal[{names}] | None = None,\n",
        "DEVICE_DOC": f"    It runs on the device; without one, on {devices[0]}.\n",
    }


def _argument(item: Input) -> str:
    if item.tensor.number is None:
        return f"{item.py_name}: TensorLike"
    kind = "SupportsIndex" if item.tensor.number == "int" else "SupportsFloat"
    default = "" if item.default_text is None else f" = {item.default_text}"
    return f"{item.py_name}: {kind}{default}"
