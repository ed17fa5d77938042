"""The Python modules over fake programs, and their weights."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import numpy as np

HERE = Path(__file__).parent


def load_module(name: str) -> ModuleType:
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, HERE / f"{name}.so")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # pickle looks up classes there
    spec.loader.exec_module(module)
    return module


def write_weights(path: Path, tensors: dict[str, list[float]]) -> Path:
    entries, data = [], b""
    for name, values in tensors.items():
        begin = len(data)
        data += np.array(values, np.float32).tobytes()
        entries.append(
            f'"{name}":{{"dtype":"F32","shape":[{len(values)}],"data_offsets":[{begin},{len(data)}]}}'
        )
    header = ("{" + ",".join(entries) + "}").encode()
    path.write_bytes(len(header).to_bytes(8, "little") + header + data)
    return path
