"""A frozen graph as text that people can read and compare: one line for each node.

It needs only the standard library: the graph is read as the JSON that torch wrote.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from aoti_driver.contract.dtypes import SCHEMA_NAMES

_WIDTH = 100


def canonical(document: Any) -> str:
    """The bytes that the build hashes and compiles: see ``graph_file.save_graph``."""
    text = json.dumps(document, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return text + "\n"


def pretty(document: Any) -> str:
    """The same document formatted for a source tree: values that fit into a line are on one
    line.
    """
    return "".join(_pretty(document, "", "")) + "\n"


def _pretty(value: Any, indent: str, key: str) -> Iterator[str]:
    line = json.dumps(value, sort_keys=True, allow_nan=False)
    containers = isinstance(value, (dict, list)) and value
    if not containers or len(indent) + len(key) + len(line) <= _WIDTH:
        yield line
        return
    inner = indent + " "
    if isinstance(value, dict):
        items = [(f"{json.dumps(k)}: ", value[k]) for k in sorted(value)]
        begin, end = "{", "}"
    else:
        items = [("", item) for item in value]
        begin, end = "[", "]"
    yield begin
    for i, (name, item) in enumerate(items):
        yield f"{',' if i else ''}\n{inner}{name}"
        yield from _pretty(item, inner, name)
    yield f"\n{indent}{end}"


def readable(document: Mapping[str, Any]) -> list[str]:
    """The graph's lines: its inputs, its nodes in order, its results."""
    return list(_graph(document["program"]["graph_module"]["graph"], ""))


def _graph(graph: Mapping[str, Any], indent: str) -> Iterator[str]:
    types = graph.get("tensor_values", {})

    def typed(name: str) -> str:
        meta = types.get(name)
        if not meta:
            return name
        dtype = SCHEMA_NAMES.get(meta.get("dtype"), f"dtype{meta.get('dtype')}")
        sizes = ", ".join(_size(size) for size in meta.get("sizes", ()))
        return f"{name}: {dtype}[{sizes}]"

    for argument in graph.get("inputs", ()):
        yield f"{indent}input {typed(_argument(argument))}"
    for node in graph.get("nodes", ()):
        results = ", ".join(typed(_argument(o)) for o in node.get("outputs", ())) or "-"
        arguments = []
        nested = []
        for given in node.get("inputs", ()):
            value = given.get("arg", {})
            if "as_graph" in value:
                nested.append((value["as_graph"]["name"], value["as_graph"]["graph"]))
            name = given.get("name") or ""
            text = _argument(value)
            arguments.append(f"{name}={text}" if name else text)
        target = node["target"].removeprefix("torch.ops.")
        yield f"{indent}{results} = {target}({', '.join(arguments)})"
        for name, inner in nested:
            yield f"{indent}  {name}:"
            yield from _graph(inner, indent + "    ")
    yield f"{indent}return {', '.join(_argument(o) for o in graph.get('outputs', ()))}"


def _argument(value: Any) -> str:
    """An argument in torch's tagged form, ``{"as_tensor": {"name": "x"}}``."""
    if isinstance(value, list):
        return f"[{', '.join(_argument(item) for item in value)}]"
    if not isinstance(value, dict):
        return json.dumps(value)
    if "name" in value and len(value) <= 2:
        return str(value["name"])
    if len(value) != 1:
        return json.dumps(value, sort_keys=True)
    ((kind, content),) = value.items()
    if kind == "as_none":
        return "None"
    if kind == "as_graph":
        return str(content["name"])
    if kind == "as_scalar_type":
        return SCHEMA_NAMES.get(content, str(content))
    if kind in ("as_name", "as_operator"):
        return str(content)
    if kind == "as_device":
        return str(content.get("type", content))
    return _argument(content)


def _size(size: Any) -> str:
    if not isinstance(size, dict):
        return str(size)
    ((kind, content),) = size.items()
    if kind != "as_expr":
        return str(content)
    # sympy's srepr: Add(Symbol('s97', positive=True, integer=True), Integer(1))
    text = re.sub(r"Symbol\('(\w+)'[^()]*\)", r"\1", str(content.get("expr_str", content)))
    return re.sub(r"Integer\((-?\d+)\)", r"\1", text)
