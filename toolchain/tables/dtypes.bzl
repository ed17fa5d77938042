"""The table of dtypes.

Starlark loads this file, and Python executes it, so it has no functions and no loads. `./bazelw run //tools/tables:update`
writes the copies in Python and C++, and `//tools/tables:tables_test` compares them.

| column | |
|---|---|
| key | torch's name |
| number | c10's scalar type, which is also that of the C ABI and of `aoti::DType` |
| schema | torch's number in saved graphs (`torch._export.serde.schema.ScalarType`) |
| bytes | bytes per element |
| kind | DLPack's kind: "bool", "unsigned", "signed", "float", "bfloat" or "complex"; or "float8" |
| enumerator | the name in `aoti::DType` and `aoti::slim::ScalarType` |
| cpp | the C++ type, as seen from the namespace `aoti`; `aoti::slim` has its own Half and BFloat16 |
| safetensors | the name in weights files |
| numpy | NumPy's scalar type; None if there is none |
| format | the character in Python's `struct` and in buffers; None if there is none |

`DTYPES` are the dtypes of a model's inputs, outputs and weights. `INSIDE_DTYPES` are further dtypes of tensors within programs
on the slim runtime. `ABI_DTYPES` have numbers in the C ABI, but no operators.
"""

DTYPES = {
    "uint8": {"number": 0, "schema": 1, "bytes": 1, "kind": "unsigned", "enumerator": "kUInt8", "cpp": "std::uint8_t", "safetensors": "U8", "numpy": "uint8", "format": "B"},
    "int8": {"number": 1, "schema": 2, "bytes": 1, "kind": "signed", "enumerator": "kInt8", "cpp": "std::int8_t", "safetensors": "I8", "numpy": "int8", "format": "b"},
    "int16": {"number": 2, "schema": 3, "bytes": 2, "kind": "signed", "enumerator": "kInt16", "cpp": "std::int16_t", "safetensors": "I16", "numpy": "int16", "format": "h"},
    "int32": {"number": 3, "schema": 4, "bytes": 4, "kind": "signed", "enumerator": "kInt32", "cpp": "std::int32_t", "safetensors": "I32", "numpy": "int32", "format": "i"},
    "int64": {"number": 4, "schema": 5, "bytes": 8, "kind": "signed", "enumerator": "kInt64", "cpp": "std::int64_t", "safetensors": "I64", "numpy": "int64", "format": "q"},
    "float16": {"number": 5, "schema": 6, "bytes": 2, "kind": "float", "enumerator": "kFloat16", "cpp": "Half", "safetensors": "F16", "numpy": "float16", "format": "e"},
    "float32": {"number": 6, "schema": 7, "bytes": 4, "kind": "float", "enumerator": "kFloat32", "cpp": "float", "safetensors": "F32", "numpy": "float32", "format": "f"},
    "float64": {"number": 7, "schema": 8, "bytes": 8, "kind": "float", "enumerator": "kFloat64", "cpp": "double", "safetensors": "F64", "numpy": "float64", "format": "d"},
    "complex64": {"number": 9, "schema": 10, "bytes": 8, "kind": "complex", "enumerator": "kComplex64", "cpp": "std::complex<float>", "safetensors": "C64", "numpy": "complex64", "format": "Zf"},
    "bool": {"number": 11, "schema": 12, "bytes": 1, "kind": "bool", "enumerator": "kBool", "cpp": "bool", "safetensors": "BOOL", "numpy": "bool_", "format": "?"},
    "bfloat16": {"number": 15, "schema": 13, "bytes": 2, "kind": "bfloat", "enumerator": "kBFloat16", "cpp": "BFloat16", "safetensors": "BF16", "numpy": None, "format": None},
}

INSIDE_DTYPES = {
    "complex128": {"number": 10, "schema": 11, "bytes": 16, "kind": "complex", "enumerator": "kComplex128", "cpp": "std::complex<double>"},
    "uint16": {"number": 27, "schema": 28, "bytes": 2, "kind": "unsigned", "enumerator": "kUInt16", "cpp": "std::uint16_t"},
    "uint32": {"number": 28, "schema": 34, "bytes": 4, "kind": "unsigned", "enumerator": "kUInt32", "cpp": "std::uint32_t"},
    "uint64": {"number": 29, "schema": 35, "bytes": 8, "kind": "unsigned", "enumerator": "kUInt64", "cpp": "std::uint64_t"},
}

ABI_DTYPES = {
    "complex32": {"number": 8, "schema": 9, "bytes": 4, "kind": "complex"},
    "float8_e5m2": {"number": 23, "schema": 30, "bytes": 1, "kind": "float8"},
    "float8_e4m3fn": {"number": 24, "schema": 29, "bytes": 1, "kind": "float8"},
    "float8_e5m2fnuz": {"number": 25, "schema": 32, "bytes": 1, "kind": "float8"},
    "float8_e4m3fnuz": {"number": 26, "schema": 31, "bytes": 1, "kind": "float8"},
}
