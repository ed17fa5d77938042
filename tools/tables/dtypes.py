"""Generates the parts of Python and C++ files that come from the table of dtypes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

_DLPACK = {
    "bool": "kDLBool",
    "unsigned": "kDLUInt",
    "signed": "kDLInt",
    "float": "kDLFloat",
    "bfloat": "kDLBfloat",
    "complex": "kDLComplex",
}
_SLIM_KINDS = {"float": "kFloating", "bfloat": "kFloating", "complex": "kComplex"}

_Rows = Mapping[str, Mapping[str, Any]]


def parts(tables: Mapping[str, _Rows]) -> dict[str, list[str]]:
    """The lines of every generated part."""
    models = tables["DTYPES"]
    slim = _by_number({**models, **tables["INSIDE_DTYPES"]})
    known = _by_number({**slim, **tables["ABI_DTYPES"]})
    own = _by_number(models)
    return {
        "python_dtypes": [_python(name, row) for name, row in own.items()],
        "schema_names": [
            f'{row["schema"]}: "{name}",'
            for name, row in sorted(known.items(), key=lambda item: item[1]["schema"])
        ],
        "enumerators": [f"{row['enumerator']} = {row['number']}," for row in own.values()],
        "element_types": [line for row in own.values() for line in _element_type(row)],
        "facts": [_facts(name, row) for name, row in own.items()],
        "scalar_types": [f"{row['enumerator']} = {row['number']}," for row in slim.values()],
        "scalar_facts": [_scalar_facts(name, row) for name, row in slim.items()],
        # Unsigned integers of more than 8 bits can only be moved and converted, as in PyTorch.
        "real_cases": _cases(own, lambda row: row["kind"] != "complex"),
        "floating_cases": _cases(slim, lambda row: row["kind"] in ("float", "bfloat")),
        "complex_cases": _cases(slim, lambda row: row["kind"] == "complex"),
        "abi_numbers": [
            f"std::int32_t aoti_torch_dtype_{name}() {{ return {row['number']}; }}"
            for name, row in known.items()
        ],
    }


def _by_number(rows: _Rows) -> dict[str, Mapping[str, Any]]:
    return dict(sorted(rows.items(), key=lambda item: item[1]["number"]))


def _python(name: str, row: Mapping[str, Any]) -> str:
    # Types of the namespace aoti begin with a capital letter.
    cpp = f"::aoti::{row['cpp']}" if row["cpp"][0].isupper() else row["cpp"]
    numpy = f'"{row["numpy"]}"' if row["numpy"] else None
    texts = [row["kind"], row["enumerator"], cpp, row["safetensors"]]
    quoted = ", ".join(f'"{text}"' for text in texts)
    return f'Dtype("{name}", {row["bytes"]}, {quoted}, {numpy}),'


def _element_type(row: Mapping[str, Any]) -> list[str]:
    return [
        "template <>",
        f"inline constexpr DType DTypeOf<{row['cpp']}> = DType::{row['enumerator']};",
    ]


def _facts(name: str, row: Mapping[str, Any]) -> str:
    return (
        f'{{DType::{row["enumerator"]}, "{name}", {row["bytes"]}, dlpack::{_DLPACK[row["kind"]]}, '
        f'"{row["safetensors"]}", "{row["format"] or ""}"}},'
    )


def _scalar_facts(name: str, row: Mapping[str, Any]) -> str:
    kind = _SLIM_KINDS.get(row["kind"], "kIntegral")
    return f'{{ScalarType::{row["enumerator"]}, "{name}", {row["bytes"]}, Kind::{kind}}},'


def _cases(rows: _Rows, chosen: Callable[[Mapping[str, Any]], bool]) -> list[str]:
    return [
        line
        for row in rows.values()
        if chosen(row)
        for line in (
            f"case ScalarType::{row['enumerator']}:",
            f"  return function.template operator()<{row['cpp']}>();",
        )
    ]
