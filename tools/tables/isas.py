"""Generates the parts of Python and C++ files that come from the table of instruction sets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_Rows = Mapping[str, Mapping[str, Any]]


def parts(tables: Mapping[str, _Rows]) -> dict[str, list[str]]:
    """The lines of every generated part."""
    isas = tables["ISAS"]
    cpus: dict[str, dict[str, Mapping[str, Any]]] = {}
    for name, row in isas.items():
        cpus.setdefault(row["cpu"], {})[name] = row
    return {
        "python_isas": [_python(name, row) for name, row in isas.items()],
        "runtime_isas": _by_cpu({cpu: _names(rows) for cpu, rows in cpus.items()}, _names([""])),
        "runtime_features": _by_cpu({cpu: _features(rows) for cpu, rows in cpus.items()}, []),
        "cpu_levels": [f"{_enumerator(row)}," for row in isas.values()],
        "lowest_level": _by_cpu({cpu: _lowest(rows) for cpu, rows in cpus.items()}, _lowest(isas)),
        "detected_level": _by_cpu({cpu: _detected(rows) for cpu, rows in cpus.items()}, []),
        "current_kernels": _by_cpu({cpu: _current(rows) for cpu, rows in cpus.items()}, []),
        "declared_kernels": _by_cpu({cpu: _declared(rows) for cpu, rows in cpus.items()}, []),
    }


def _by_cpu(code: Mapping[str, list[str]], otherwise: list[str]) -> list[str]:
    """Code for each CPU, by the macro that the compiler defines for it."""
    lines: list[str] = []
    for cpu, body in code.items():
        if body:
            lines += [f"#{'elif' if lines else 'if'} defined(__{cpu}__)", *body]
    return [*lines, *(["#else", *otherwise] if otherwise else []), "#endif"]


def _python(name: str, row: Mapping[str, Any]) -> str:
    vector = f'"{row["vector"]}"' if row["vector"] else None
    return f'Isa("{name}", "{row["cpu"]}", {vector}),'


def _enumerator(row: Mapping[str, Any]) -> str:
    """ "x86_v3" -> "kX86V3"."""
    return "k" + "".join(part.capitalize() for part in row["level"].split("_"))


def _names(names: Any) -> list[str]:
    texts = ", ".join(f'"{name}"' for name in names)
    return [f"constexpr std::string_view kLevels[] = {{{texts}}};"]


def _features(rows: _Rows) -> list[str]:
    """The features of all but a CPU's first instruction set, which every CPU of its kind has."""
    lines: list[str] = []
    for level, (name, row) in enumerate(rows.items()):
        if level == 0:
            continue
        checks = [
            f'need(__builtin_cpu_supports("{feature}"), "{text}");'
            for feature, text in row["features"].items()
        ]
        whole = f'if (missing.empty()) need(__builtin_cpu_supports("{name}"), "{name}");'
        lines += [
            f"if (level >= {level}) {{",
            *(f"  {line}" for line in [*checks, whole]),
            "}",
        ]
    return lines


def _lowest(rows: _Rows) -> list[str]:
    lowest = _enumerator(next(iter(rows.values())))
    return [f"inline constexpr CpuLevel kLowestCpuLevel = CpuLevel::{lowest};"]


def _detected(rows: _Rows) -> list[str]:
    return [
        f'if (__builtin_cpu_supports("{name}")) return CpuLevel::{_enumerator(row)};'
        for name, row in list(rows.items())[:0:-1]
    ]


def _current(rows: _Rows) -> list[str]:
    tables = [f"{row['level']}::table" for row in rows.values()]
    if len(tables) == 1:
        return [f"#define AOTI_SLIM_CURRENT_KERNELS(table) {tables[0]}"]
    return _macro(
        "AOTI_SLIM_CURRENT_KERNELS(table)",
        [f"::aoti::slim::KernelsOfCurrentLevel({', '.join(tables)})"],
    )


def _declared(rows: _Rows) -> list[str]:
    declarations = [
        f"AOTI_SLIM_DECLARE_KERNELS_OF({row['level']}, Type, table)" for row in rows.values()
    ]
    return _macro("AOTI_SLIM_DECLARE_KERNELS(Type, table)", declarations)


def _macro(name: str, body: list[str]) -> list[str]:
    """A macro in the format of clang-format: on one line if it fits, otherwise on several."""
    line = f"#define {name} {' '.join(body)}"
    if len(body) == 1 and len(line) <= 100:
        return [line]
    lines = [f"#define {name}", *(f"  {part}" for part in body)]
    width = max(map(len, lines[:-1]))
    return [*(f"{line:{width}} \\" for line in lines[:-1]), lines[-1]]
