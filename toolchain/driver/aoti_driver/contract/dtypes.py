"""The dtypes that a tensor of a program can have."""

from __future__ import annotations

# torch.dtype's name -> (bytes per element, safetensors' name, number of c10's scalar type)
DTYPES: dict[str, tuple[int, str, int]] = {
    "uint8": (1, "U8", 0),
    "int8": (1, "I8", 1),
    "int16": (2, "I16", 2),
    "int32": (4, "I32", 3),
    "int64": (8, "I64", 4),
    "float16": (2, "F16", 5),
    "float32": (4, "F32", 6),
    "float64": (8, "F64", 7),
    "complex64": (8, "C64", 9),
    "bool": (1, "BOOL", 11),
    "bfloat16": (2, "BF16", 15),
}
