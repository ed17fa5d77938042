"""What forward() returns, in generated code: the Python module's table, and types and text."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Collection, Iterable, Iterator

from aoti_driver.base.errors import DriverError
from aoti_driver.bindings import names
from aoti_driver.bindings.model import Methods, Model, Output
from aoti_driver.bindings.text import cpp_string
from aoti_driver.contract.dtypes import DTYPES
from aoti_driver.contract.manifest import ProgramManifest
from aoti_driver.contract.result_tree import Result

_KINDS = {
    "none": "kNone",
    "absent": "kNone",
    "bool": "kBool",
    "int": "kInt",
    "float": "kFloat",
    "str": "kStr",
    "dict": "kDict",
    "list": "kList",
    "tuple": "kTuple",
    "object": "kObject",
}
_CPP_TYPES = {
    "bool": "bool",
    "int": "std::int64_t",
    "float": "double",
    "str": "std::string_view",
}
# What the generated module and its stub have beside the classes of objects.
_TAKEN: tuple[str, ...] = (
    "Any",
    "Error",
    "Explanation",
    "InputError",
    "Model",
    "NamedTuple",
    "Outputs",
    "Protocol",
)
_TAKEN += ("SupportsDLPack", "SupportsFloat", "SupportsIndex", "Tensor", "TensorLike", "TypedDict")
_TAKEN += ("dims", "final", "inputs", "load", "numpy", "os", "outputs")


def check(source: ProgramManifest) -> None:
    """Raises DriverError for a result whose names can't be those of fields."""
    if source.result is None:
        return
    known = {output.name for output in source.outputs}
    for node in source.result.constants():
        names.check_identifier(node.name, f"{source.label}: the result's constant")
        if not _is_constant(node):
            raise DriverError(
                f'{source.label}: the result has the {node.kind} "{node.value}", which is none'
            )
    for node in source.result.nodes():
        if node.kind == "output" and node.name not in known:
            raise DriverError(f'{source.label}: the result has the unknown output "{node.name}"')
        if node.kind == "object":
            where = f"{source.label}: the result's {node.name} has the field"
            for key in map(str, node.keys):
                if not names.python_field(key).isidentifier():
                    raise DriverError(
                        f'{where} "{key}", which can\'t be a name in Python. Return a dict in '
                        "place of the object, or rename the field."
                    )
            fields = [(str(key), names.python_field(str(key))) for key in node.keys]
            names.check_unique(fields, f"{source.label}: the fields of the result's {node.name}:")


def _is_constant(node: Result) -> bool:
    try:
        value: object = {"int": int, "float": float}.get(node.kind, str)(node.value)
    except ValueError:
        return False
    if node.kind == "bool":
        return value in ("True", "False")
    return node.kind == "str" or str(value) == node.value


def constant_fields(model: Model) -> list[str]:
    """The constants as members of the C++ struct of outputs."""
    if model.program.result is None:
        return []
    return [
        f"static constexpr {kind} {name} = {value};  // constant"
        for name, kind, value in map(constant, model.program.result.constants())
    ]


def constant(node: Result) -> tuple[str, str, str]:
    """A constant of the result in C++: its name, its type and its value."""
    return names.cpp_name(node.name), _CPP_TYPES[node.kind], _cpp_value(node)


def _cpp_value(node: Result) -> str:
    if node.kind == "str":
        return cpp_string(node.value)
    if node.kind == "bool":
        return node.value.lower()
    if node.kind == "int":  # the lowest one is no literal
        return node.value if int(node.value) != -(2**63) else "INT64_MIN"
    return cpp_float(node.value)


def cpp_float(text: str) -> str:
    """A float as C++ writes it, from what Python does."""
    special = {"inf": "__builtin_inf()", "-inf": "-__builtin_inf()", "nan": '__builtin_nan("")'}
    return special.get(text, text)


def text(result: Result) -> str:
    """The structure as Python writes it, with the names of outputs in place of their values."""
    items = [text(item) for item in result.items]
    match result.kind:
        case "output":
            return result.name
        case "none" | "absent":
            return "None"
        case "str":
            return json.dumps(result.value)
        case "dict":
            pairs = zip(map(json.dumps, result.keys), items)
            return "{" + ", ".join(f"{key}: {item}" for key, item in pairs) + "}"
        case "list":
            return f"[{', '.join(items)}]"
        case "tuple":
            return f"({', '.join(items)}{',' if len(items) == 1 else ''})"
        case "object":
            pairs = zip(_fields(result), items)
            return f"{result.name}({', '.join(f'{key}={item}' for key, item in pairs)})"
    return result.value


def _fields(node: Result) -> list[str]:
    return [names.python_field(str(key)) for key in node.keys]


@dataclasses.dataclass
class PythonResult:
    """The result of one model in Python.

    table: the initializers of its ResultNodes. annotation: the type of the result. definitions: the
    lines of the stub that define its classes. typed_dicts: whether the stub needs TypedDict.
    top: the name of the class of the whole. classes: those that other results of the module have.
    taken: more names that classes can't have.
    """

    model: Model
    table: list[str] = dataclasses.field(default_factory=list)
    annotation: str = ""
    definitions: list[str] = dataclasses.field(default_factory=list)
    typed_dicts: bool = False
    top: str = "Outputs"
    classes: dict[str, tuple[str, ...]] = dataclasses.field(default_factory=dict)
    taken: Collection[str] = ()

    def __post_init__(self) -> None:
        self._outputs = {item.tensor.name: i for i, item in enumerate(self.model.outputs)}
        if self.model.program.result is None:
            fields = [_field_line(o.py_name, annotation(o)) for o in self.model.outputs]
            self._define(self.top, fields)
            self.annotation = self.top
        else:
            self.annotation = self._visit(self.model.program.result, None, self.top)

    def _visit(self, node: Result, key: str | int | None, place: str) -> str:
        """Adds a node to the table, and its classes to the stub; returns its type.

        place: a name for its class, if that has none of its own.
        """
        row = len(self.table)
        self.table.append("")
        annotations = []
        keys: Iterable[str | int | None] = [None] * len(node.items)
        if node.kind == "dict":
            keys = node.keys
        elif node.kind == "object":
            keys = _fields(node)
        for i, (item, inner) in enumerate(zip(node.items, keys)):
            below = re.sub(r"\W", "_", f"{place}_{i if inner is None else inner}")
            annotations.append(self._visit(item, inner, below))
        kind, number, text = self._facts(node)
        annotation = self._annotation(node, annotations, place)
        if node.kind == "object":
            text = annotation
        fields = [f"ResultKind::{kind}", str(number), cpp_string(text)]
        if key is not None:
            fields.append(cpp_string(str(key)))
        if isinstance(key, int):
            fields.append("true")
        self.table[row] = f"{{{', '.join(fields)}}}"
        return annotation

    def _facts(self, node: Result) -> tuple[str, int, str]:
        if node.kind != "output":
            return _KINDS[node.kind], len(node.items), node.value
        index = self._outputs[node.name]
        number = self.model.outputs[index].tensor.number
        return "kTensor" if number is None else "kNumber", index, ""

    def _annotation(self, node: Result, items: list[str], place: str) -> str:
        match node.kind:
            case "output":
                return annotation(self.model.outputs[self._outputs[node.name]])
            case "none" | "absent":
                return "None"
            case "list":
                return f"list[{_union(items)}]"
            case "tuple":
                return f"tuple[{', '.join(items) or '()'}]"
            case "object":
                return self._object(node, items, place)
            case "dict":
                return self._dict(node, items, place)
        return node.kind

    def _dict(self, node: Result, items: list[str], place: str) -> str:
        if not items or not all(isinstance(key, str) for key in node.keys):
            kinds = dict.fromkeys(type(key).__name__ for key in node.keys)
            return f"dict[{' | '.join(kinds) or 'str'}, {_union(items)}]"
        self.typed_dicts = True
        # The stub's alone: the module has no such class.
        name = f"_{place}"
        pairs = ", ".join(f"{json.dumps(k)}: {item}" for k, item in zip(node.keys, items))
        self.definitions.append(f'{name} = TypedDict("{name}", {{{pairs}}})')
        return name

    def _object(self, node: Result, items: list[str], place: str) -> str:
        lines = [_field_line(*pair) for pair in zip(_fields(node), items)]
        own = re.sub(r"\W", "_", node.name)
        taken = {*_TAKEN, *self.taken}
        for name in [self.top] if place == self.top else _candidates(own, taken):
            if self.classes.setdefault(name, tuple(lines)) == tuple(lines):
                break
        self._define(name, lines)
        return name

    def _define(self, name: str, fields: list[str]) -> None:
        lines = [f"    {field}" for field in fields or ["pass"]]
        definition = "\n".join([f"class {name}(NamedTuple):", *lines])
        if definition not in self.definitions:
            self.definitions.append(definition)


def _candidates(wanted: str, taken: Collection[str]) -> Iterator[str]:
    if wanted not in taken:
        yield wanted
    count = 2
    while True:
        yield f"{wanted}_{count}"
        count += 1


def python_results(methods: Methods) -> list[PythonResult]:
    """Of each method. Equal objects have one class, others of the same name have numbers."""
    classes: dict[str, tuple[str, ...]] = {}
    taken = ["Method"]
    for method in methods.methods:
        taken += [method.name, method.outputs_class]
    results: list[PythonResult] = []
    tops: dict[str, list[str]] = {}  # the fields of the named tuples that methods have
    for method in methods.methods:
        top = "Outputs" if methods.spec.single else method.outputs_class
        fields = [f"{o.py_name}: {annotation(o)}" for o in method.model.outputs]
        if method.model.program.result is None and tops.setdefault(top, fields) != fields:
            top += "".join(word.capitalize() for word in method.variant.split("_"))
        results.append(PythonResult(method.model, top=top, classes=classes, taken=taken))
    return results


def _union(items: list[str]) -> str:
    return " | ".join(dict.fromkeys(items)) or "Any"


def _field_line(name: str, type_text: str) -> str:
    # A field may hide one of tuple's own methods.
    ignore = "  # type: ignore[assignment]" if name in ("count", "index") else ""
    return f"{name}: {type_text}{ignore}"


def annotation(item: Output) -> str:
    """The type of an output in the stub."""
    if item.tensor.number is not None:
        return item.tensor.number
    numpy = DTYPES[item.tensor.dtype].numpy
    return f"numpy.typing.NDArray[numpy.{numpy}]" if numpy else "Tensor"
