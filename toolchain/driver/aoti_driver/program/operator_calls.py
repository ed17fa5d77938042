"""The operators that a frozen graph calls. It needs only the standard library."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from aoti_driver.contract.dtypes import SCHEMA_NAMES

_PREFIX = "torch.ops."
# They are about sizes and dtypes, and compute nothing.
_NOT_COMPUTED = ("aten.sym_", "aten._assert_tensor_metadata")


@dataclasses.dataclass(frozen=True)
class OperatorCall:
    """A node of the graph.

    operator: such as "aten.topk.default". dtypes: those of its results, "float32, int64"; "number"
    for one that is no tensor.
    """

    node: str
    operator: str
    dtypes: str


def read(path: str) -> list[OperatorCall]:
    """All calls, in the graph's order; those of branches and loops after their node."""
    document = json.loads(Path(path).read_text(encoding="utf-8"))
    return list(_calls(document["program"]["graph_module"]["graph"]))


def _calls(graph: Mapping[str, Any]) -> Iterator[OperatorCall]:
    tensors = graph.get("tensor_values", {})
    for node in graph.get("nodes", ()):
        operator = node["target"].removeprefix(_PREFIX)
        if operator != node["target"] and not operator.startswith(_NOT_COMPUTED):
            results = [kind for value in node.get("outputs", ()) for kind in _kinds(value, tensors)]
            dtypes = ", ".join(dict.fromkeys(results)) or "none"
            yield OperatorCall(node.get("name") or "", operator, dtypes)
        for given in node.get("inputs", ()):
            if nested := given.get("arg", {}).get("as_graph"):
                yield from _calls(nested["graph"])


def _kinds(value: Any, tensors: Mapping[str, Any]) -> Iterator[str]:
    """The dtypes of a result in torch's tagged form, ``{"as_tensor": {"name": "x"}}``."""
    for kind, content in value.items():
        if kind == "as_tensors":
            for item in content:
                yield from _kinds({"as_tensor": item}, tensors)
        elif kind == "as_optional_tensors":
            for item in content:
                yield from _kinds(item, tensors)
        elif kind == "as_tensor":
            number = tensors.get(content["name"], {}).get("dtype")
            yield SCHEMA_NAMES.get(number, f"dtype{number}")
        elif kind == "as_optional_tensor":
            yield from _kinds(content, tensors)
        elif kind != "as_none":
            yield "number"
