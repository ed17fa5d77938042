"""What forward() returns, as a tree: containers, the program's outputs, and constants.

The generated Python module builds its results from it. It needs only the standard library.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Literal, TypeAlias

ConstantKind: TypeAlias = Literal["none", "bool", "int", "float", "str"]
Kind: TypeAlias = Literal[
    "output", "none", "bool", "int", "float", "str", "dict", "list", "tuple", "object", "absent"
]


@dataclasses.dataclass(frozen=True)
class Result:
    """A node of the tree.

    kind: "output": one of the program's outputs; "none" to "str": a constant; "dict" to "object": a
      container ("object": a class with fields, such as a NamedTuple or a registered dataclass);
      "absent": a field that is None, and that torch leaves out of the tree.
    name: of an output: the Output's name; of a constant: an identifier that no output has; of an
      object: its class's name.
    value: of a constant, as Python's str() writes it.
    keys: of a dict (strings and integers) or an object (its fields), one for each item.
    """

    kind: Kind
    name: str = ""
    value: str = ""
    keys: tuple[str | int, ...] = ()
    items: tuple[Result, ...] = ()

    def nodes(self) -> Iterator[Result]:
        """This node and all below it, each before its items."""
        yield self
        for item in self.items:
            yield from item.nodes()

    def leaves(self) -> list[Result]:
        """Outputs and constants, in the order of torch's pytree."""
        containers = ("dict", "list", "tuple", "object", "absent")
        return [node for node in self.nodes() if node.kind not in containers]

    def constants(self) -> list[Result]:
        """The constants but for None."""
        return [n for n in self.nodes() if n.kind in ("bool", "int", "float", "str")]
