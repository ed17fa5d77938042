"""The dtypes that a tensor of a program can have."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True)
class Dtype:
    """The columns of toolchain/tables/dtypes.bzl, which describes them."""

    name: str
    bytes: int
    kind: str
    enumerator: str
    cpp: str
    safetensors: str
    numpy: str | None

    @property
    def integer(self) -> bool:
        return self.kind in ("unsigned", "signed")

    @property
    def range(self) -> tuple[int, int] | None:
        """The smallest and the largest value of an integer or a bool."""
        bits = 8 * self.bytes
        return {
            "bool": (0, 1),
            "signed": (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1),
            "unsigned": (0, 2**bits - 1),
        }.get(self.kind)


DTYPES = {
    dtype.name: dtype
    for dtype in (
        # BEGIN python_dtypes: generated from toolchain/tables by ./bazelw run //tools/tables:update
        Dtype("uint8", 1, "unsigned", "kUInt8", "std::uint8_t", "U8", "uint8"),
        Dtype("int8", 1, "signed", "kInt8", "std::int8_t", "I8", "int8"),
        Dtype("int16", 2, "signed", "kInt16", "std::int16_t", "I16", "int16"),
        Dtype("int32", 4, "signed", "kInt32", "std::int32_t", "I32", "int32"),
        Dtype("int64", 8, "signed", "kInt64", "std::int64_t", "I64", "int64"),
        Dtype("float16", 2, "float", "kFloat16", "::aoti::Half", "F16", "float16"),
        Dtype("float32", 4, "float", "kFloat32", "float", "F32", "float32"),
        Dtype("float64", 8, "float", "kFloat64", "double", "F64", "float64"),
        Dtype("complex64", 8, "complex", "kComplex64", "std::complex<float>", "C64", "complex64"),
        Dtype("bool", 1, "bool", "kBool", "bool", "BOOL", "bool_"),
        Dtype("bfloat16", 2, "bfloat", "kBFloat16", "::aoti::BFloat16", "BF16", None),
        # END python_dtypes
    )
}

# The names of all dtypes of torch in the tables, by their number in saved graphs.
SCHEMA_NAMES = {
    # BEGIN schema_names: generated from toolchain/tables by ./bazelw run //tools/tables:update
    1: "uint8",
    2: "int8",
    3: "int16",
    4: "int32",
    5: "int64",
    6: "float16",
    7: "float32",
    8: "float64",
    9: "complex32",
    10: "complex64",
    11: "complex128",
    12: "bool",
    13: "bfloat16",
    28: "uint16",
    29: "float8_e4m3fn",
    30: "float8_e5m2",
    31: "float8_e4m3fnuz",
    32: "float8_e5m2fnuz",
    34: "uint32",
    35: "uint64",
    # END schema_names
}
