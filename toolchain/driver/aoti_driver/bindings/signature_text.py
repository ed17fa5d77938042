"""The signature of a model as text, for the header's comment and the Python docstring."""

from __future__ import annotations

import textwrap

from aoti_driver.bindings import results
from aoti_driver.bindings.model import Input, Model, Output
from aoti_driver.bindings.text import comment_text
from aoti_driver.contract.program_parts import Dim
from aoti_driver.contract.size_expr import python_text


def describe(model: Model) -> list[str]:
    """Lines without indentation or comment marks."""
    lines = _section("Dims", [(dim.name, _dim(model, dim)) for dim in model.dims])
    lines += _section("Inputs", [(item.tensor.name, _input(model, item)) for item in model.inputs])
    lines += _section("Outputs", [(item.tensor.name, _output(item)) for item in model.outputs])
    if model.program.result is not None:
        text = textwrap.wrap(results.text(model.program.result), 90, break_long_words=False)
        lines += _section("Result in Python", [(line, "") for line in text])
    lines += _section("Conditions", [(python_text(guard), "") for guard in model.program.guards])
    return lines[1:]


def _section(title: str, rows: list[tuple[str, str]]) -> list[str]:
    if not rows:
        return []
    width = max(len(name) for name, _ in rows)
    rows = [(comment_text(name), comment_text(text)) for name, text in rows]
    return ["", f"{title}:"] + [f"  {name:{width}}  {text}".rstrip() for name, text in rows]


def _dim(model: Model, dim: Dim) -> str:
    text = f"{dim.min}..{dim.max}"
    return text if dim.alias is None else f"{text}, always {dim.alias}"


def number_text(model: Model, item: Input) -> str:
    """The type of a Python number, and its range if it has one."""
    limits: tuple[float, float] | None = item.float_limits
    if item.value_dim >= 0:
        dim = model.dims[item.value_dim]
        limits = dim.min, dim.max
    return item.type_text + (f" in {limits[0]}..{limits[1]}" if limits is not None else "")


def _input(model: Model, item: Input) -> str:
    text = item.type_text
    if item.tensor.number is not None:
        text = number_text(model, item)
        if item.default_text is not None:
            text += f", default {item.default_text}"
    elif item.value_dim >= 0:
        text += f", the value of {model.dims[item.value_dim].name}"
    if item.checked_values is not None:
        text += f" in {item.checked_values[0]}..{item.checked_values[1]}"
    if item.tensor.path != item.tensor.name:
        text += f", forward()'s {item.tensor.path}"
    if item.tensor.mutated:
        text += ", written in place"
    return text


def _output(item: Output) -> str:
    return (
        item.type_text
        if item.tensor.path in ("", item.tensor.name)
        else f"{item.type_text}, {item.tensor.path}"
    )
