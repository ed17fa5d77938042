"""Finds the functions and dtypes that a program needs and the slim runtime lacks, with source
lines.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping, Sequence

from aoti_driver.contract import source_locations
from aoti_driver.contract.code_parts import Shim
from aoti_driver.contract.source_locations import Location


@dataclasses.dataclass(frozen=True)
class Missing:
    """A function that the slim runtime lacks, and the places in the model that need it.

    dtypes: the dtypes that the runtime's function does not support; empty if it lacks the function.
    """

    function: str
    operators: tuple[str, ...]
    places: tuple[str, ...]
    dtypes: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return (self.operators[0] if self.operators else self.function) + self._of()

    def _of(self) -> str:
        kinds = [" and ".join((a or b).split(",")) for a, b in map(_sides, self.dtypes)]
        return f" of {', or of '.join(dict.fromkeys(kinds))}" if kinds else ""

    def __str__(self) -> str:
        what = ", ".join(self.operators) or self.function
        function = f" ({self.function})" if self.operators else ""
        lines = [f"  {what}{self._of()}{function}"]
        lines += [f"    used at {place}" for place in self.places]
        return "\n".join(lines)


def symbol(name: str) -> str:
    """The C name of a function of the slim runtime.

    >>> symbol("aten::roll.default_overload")
    'aoti_slim_op_aten_roll_default_overload'
    """
    if "::" not in name:
        return name
    return "aoti_slim_op_" + name.replace("::", "_").replace(".", "_")


# How names begin in dtypes.txt, and what that stands for.
PREFIXES = {"cpu_": "aoti_torch_cpu_", "aten_": "aoti_slim_op_aten_", "op_": "aoti_slim_op_"}
# How dtypes begin there: the number of bits follows.
KINDS = {"bf": "bfloat", "c": "complex", "f": "float", "i": "int", "u": "uint"}
_KIND = re.compile(rf"\b({'|'.join(KINDS)})(?=\d)")


def parse_dtypes(text: str) -> dict[str, tuple[str, ...]]:
    """Maps each function to the dtypes that follow it and others on a line. Names may begin as in
    PREFIXES, dtypes as in KINDS.

    >>> parse_dtypes("one cpu_two: i8->int8|bool")
    {'one': ('int8->int8', 'int8->bool'), 'aoti_torch_cpu_two': ('int8->int8', 'int8->bool')}
    """
    found = {}
    for line in text.splitlines():
        names, _, words = line.partition(":")
        sides = [_sides(_KIND.sub(_kind, word)) for word in words.split()]
        dtypes = tuple(f"{given}->{one}" for given, all_ in sides for one in all_.split("|"))
        found.update(dict.fromkeys(map(_whole, names.split()), dtypes))
    return found


def _kind(match: re.Match[str]) -> str:
    return KINDS[match[1]]


def _whole(name: str) -> str:
    for short, prefix in PREFIXES.items():
        if name.startswith(short):
            return prefix + name.removeprefix(short)
    return name


def find_missing(
    shims: Sequence[Shim],
    functions: set[str],
    dtypes: Mapping[str, Sequence[str]],
    locations: Mapping[str, Location],
) -> list[Missing]:
    """The shims that are not in ``functions``, or that are called with other dtypes than ``dtypes``
    has for the function, with the source lines of their graph nodes.

    A function that is not in ``dtypes`` takes all dtypes: it handles memory, not numbers.
    """
    missing = []
    for shim in shims:
        name = symbol(shim.name)
        lacks: tuple[str, ...] = ()
        if name in functions:
            had = dtypes.get(name)
            lacks = tuple(d for d in shim.dtypes if had is not None and not _covered(d, had))
            if not lacks:
                continue
        places: dict[str, None] = {}
        for node in shim.nodes:
            places[source_locations.place(node, locations.get(node))] = None
        missing.append(Missing(shim.name, shim.operators, tuple(places), lacks))
    return missing


def _covered(called: str, had: Sequence[str]) -> bool:
    """Whether the function supports a call with these dtypes.

    A program may leave out results of an operator, or have it write into an argument: then the call
    returns fewer tensors than the operator does.

    >>> _covered("int8,uint8->int32", ["int8->int32", "int8,uint8->int32"])
    True
    >>> _covered("float32->int64", ["float32->float32,int64"])
    True
    >>> _covered("uint16->uint16", ["float32->float32"])
    False
    """
    arguments, results = _sides(called)
    return any(
        arguments == _sides(one)[0]
        and set(results.split(",")) - {""} <= set(_sides(one)[1].split(","))
        for one in had
    )


def _sides(dtypes: str) -> tuple[str, str]:
    """The dtypes of the arguments and those of the results."""
    arguments, _, results = dtypes.partition("->")
    return arguments, results
