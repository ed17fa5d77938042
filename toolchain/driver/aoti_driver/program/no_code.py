"""Reads programs as data: no code from a ``.pt2`` file or a frozen graph is run.

torch's readers unpickle sample inputs, some weights and constants, evaluate sizes with Python's
``eval`` (through sympy), import the modules that pytree specs name, load compiled libraries, and
write names and targets into source text that they execute. Inside :func:`no_code`, each of these
accepts the content of a plain program, and refuses anything else before it is run.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import dataclasses
import functools
import io
import json
import re
import types
import zipfile
from collections.abc import Iterator
from typing import Any, NoReturn

import sympy
import torch
import torch.utils._sympy.functions as sympy_functions
from torch._export.serde import schema, serialize

from aoti_driver.base.errors import DriverError
from aoti_driver.torch_internals import patching

_DESERIALIZER = "torch._export.serde.serialize:GraphModuleDeserializer"
_SHOWN = 80
_LONGEST_EXPRESSION = 20_000
# The syntax of expressions for sizes. No attributes or subscripts; strings only in Symbol('s0').
_EXPRESSION_NODES = (
    ast.Expression,
    ast.BinOp,
    ast.UnaryOp,
    ast.BoolOp,
    ast.Compare,
    ast.IfExp,
    ast.Tuple,
    ast.Name,
    ast.Load,
    ast.operator,
    ast.unaryop,
    ast.boolop,
    ast.cmpop,
)
_FACTORIES = ("bool", "dict", "float", "int", "list", "set", "str", "tuple")
_IDENTIFIERS = frozenset({"name", "as_name"})
_PATHS = frozenset(
    {"buffer_name", "custom_obj_name", "fqn", "parameter_name", "tensor_constant_name"}
)
_TABLES = frozenset(
    {"custom_obj_values", "sym_bool_values", "sym_float_values", "sym_int_values", "tensor_values"}
)


class _Refused(BaseException):
    """Not an Exception, because torch reacts to exceptions by trying a reader that runs code."""


@contextlib.contextmanager
def no_code(where: str, archive: str | None = None) -> Iterator[None]:
    """Inside the block, torch reads programs without running their content.

    where: starts the error. archive: the file that is read, to name its members.
    """
    deserialize = patching.original(f"{_DESERIALIZER}.deserialize")
    operator = patching.original(f"{_DESERIALIZER}.deserialize_operator")
    load, sympify = torch.load, sympy.sympify

    def plain_load(file: Any, *args: Any, **options: Any) -> Any:
        try:
            return load(file, *args, **{**options, "map_location": "cpu", "weights_only": True})
        except Exception as e:
            raise _Refused(_pickle(archive, file, e)) from None

    def pickled(data: bytes, *_: Any, **__: Any) -> NoReturn:
        raise _Refused(_pickle(archive, io.BytesIO(data), None))

    def compiled(_: Any, model: str, *__: Any, **___: Any) -> NoReturn:
        raise _Refused(f'it holds the compiled program "data/aotinductor/{model}"')

    sizes: dict[Any, Any] = {}

    def plain_sympify(value: Any, *args: Any, **options: Any) -> Any:
        if not isinstance(value, str):
            return sympify(value, *args, **options)
        # A program repeats few sizes many times. What a size means hangs on its names.
        names = options.get("locals", {})
        key = None
        if not args and options.keys() == {"locals"}:
            key = (value, *map(names.get, _names(value)))
            if key in sizes:
                return sizes[key]
        _check_expression(value)
        size = sympify(value, *args, **options)
        if key is not None:
            sizes[key] = size
        return size

    def plain_operator(self: Any, target: str) -> Any:
        found = operator(self, target)
        if not isinstance(found, str) and not _is_operator(found):
            raise _Refused(f'it calls "{_short(target)}", which is not an operator of PyTorch')
        return found

    def plain_deserialize(self: Any, graph_module: Any, *args: Any, **options: Any) -> Any:
        _check_names(graph_module)
        return deserialize(self, graph_module, *args, **options)

    try:
        with patching.replaced(
            {
                "torch:load": plain_load,
                "torch._C:_pickle_load_obj": pickled,
                "torch.export.pt2_archive._package:pickle": types.SimpleNamespace(loads=pickled),
                "torch.export.pt2_archive._package:_load_aoti": compiled,
                "sympy:sympify": plain_sympify,
                "torch.utils._pytree:importlib": types.SimpleNamespace(import_module=_plain_module),
                f"{_DESERIALIZER}.deserialize_operator": plain_operator,
                f"{_DESERIALIZER}.deserialize": plain_deserialize,
            }
        ):
            yield
    except _Refused as e:
        raise DriverError(
            f"{where}: {e}. A program is read as data: rules_aoti runs no code that a file brings."
        ) from None


def _pickle(archive: str | None, file: Any, error: Exception | None) -> str:
    member = _member(archive, file) if archive and isinstance(file, io.BytesIO) else None
    what = f'the member "{member}"' if member else "a member"
    reason = "expected tensors, numbers, strings, tuples, lists and dicts alone"
    if error is not None and (name := asked_for(error)):
        reason = f'it asks for "{name}"; {reason}'
    return (
        f"{what} is a pickle that can be read only by running it: {reason}. Save the program "
        "with plain tensors for its weights, constants and sample inputs"
    )


def asked_for(error: BaseException) -> str | None:
    """The class or function that a pickle names and that torch's restricted reader refuses."""
    found = re.search(r"(?:GLOBAL|class) ([\w.]+)", str(error))
    return found and _short(found[1])


def _member(archive: str, file: io.BytesIO) -> str | None:
    content = file.getbuffer()
    with contextlib.suppress(Exception), zipfile.ZipFile(archive) as members:
        for info in members.infolist():
            if info.file_size == len(content) and members.read(info) == content:
                return _short(info.filename)
    return None


def _is_operator(target: Any) -> bool:
    overloads = (torch._ops.OpOverload, torch._ops.HigherOrderOperator)
    if isinstance(target, overloads):
        return target is not torch.ops.aten.from_file.default  # it can open any file
    return any(target is plain for plain in serialize._SYM_OPS)


@functools.cache
def _names(text: str) -> list[str]:
    return re.findall(r"[A-Za-z_]\w*", text)


def _check_expression(text: str) -> None:
    refused = f'it has the size "{_short(text)}", which is not an arithmetic expression'
    try:
        if len(text) > _LONGEST_EXPRESSION:
            raise _Refused(refused)
        nodes = list(ast.walk(ast.parse(text.strip(), mode="eval")))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise _Refused(refused) from None
    accepted = {id(part) for node in nodes if isinstance(node, ast.Call) for part in _plain(node)}
    for node in nodes:
        if isinstance(node, ast.Call):
            allowed = id(node.func) in accepted
        elif isinstance(node, ast.Constant):
            allowed = isinstance(node.value, (bool, int, float)) or id(node) in accepted
        else:
            allowed = isinstance(node, _EXPRESSION_NODES) or id(node) in accepted
        if not allowed:
            raise _Refused(refused)


def _plain(call: ast.Call) -> Iterator[ast.AST]:
    """The parts of a call that are accepted here, but not everywhere in an expression."""
    if not (isinstance(call.func, ast.Name) and _is_function(call.func.id)):
        return
    yield call.func
    if call.func.id == "Symbol" and call.args:  # as in Symbol('s0', integer=True)
        (text, *_) = call.args
        if isinstance(text, ast.Constant) and str(text.value).isidentifier():
            yield text
    for keyword in call.keywords:  # assumptions, precision, evaluate
        if isinstance(keyword.value, ast.Constant) and isinstance(keyword.value.value, int):
            yield keyword
    if call.func.id == "Float" and call.args:
        (text, *_) = call.args
        with contextlib.suppress(ValueError):
            float(str(getattr(text, "value", "")))
            yield text


def _is_function(name: str) -> bool:
    found = getattr(sympy_functions, name, None) or getattr(sympy, name, None)
    return name == "sqrt" or (isinstance(found, type) and issubclass(found, sympy.Basic))


def _plain_module(name: str) -> Any:
    """Replaces the import of modules that a pytree's spec names; it has only the types for a
    defaultdict.

    (The types of enumerations are not found.)
    """
    if name != "builtins":
        raise _Refused(f'its inputs or outputs name the Python module "{_short(name)}"')
    return types.SimpleNamespace(**{n: getattr(builtins, n) for n in _FACTORIES})


def _check_names(value: Any, field: str = "") -> None:
    """Checks names, because they become source text when torch turns a graph into a function."""
    if value is None or isinstance(value, (bool, int, float, schema.TensorMeta)):
        return  # a TensorMeta has no names
    if isinstance(value, str):
        dotted = all(part.isidentifier() for part in value.split("."))
        if field in _IDENTIFIERS and value and not dotted:
            raise _Refused(f'it has the name "{_short(value)}", expected an identifier')
        if field in _PATHS and not (value.isprintable() and not set(value) & set("\"'\\")):
            raise _Refused(f'it has the name "{_short(value)}", expected a name without quotes')
        if field in ("in_spec", "as_string"):
            (_check_keywords if field == "in_spec" else _check_text)(value)
    elif isinstance(value, dict):
        for key, item in value.items():
            _check_names(key, "name" if field in _TABLES else "")
            _check_names(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            _check_names(item, "name" if field == "forward_arg_names" else "")
    elif dataclasses.is_dataclass(value):
        for name, item in vars(value).items():
            if name == "inputs" and type(value).__name__ == "Node":
                # A string among the arguments of an operator is written with Python's repr.
                for argument in item:
                    if argument.arg.type != "as_string":
                        _check_names(argument)
            elif name != "metadata":
                _check_names(item, name.lstrip("_"))


def _check_text(value: str) -> None:
    if not value.isprintable() or set(value) & set("\"'\\"):
        raise _Refused(f'an input is the text "{_short(value)}", expected one without quotes')


def _check_keywords(text: str) -> None:
    """Checks the names of keyword arguments, which are keys of the outermost dict in a pytree's
    spec.
    """
    with contextlib.suppress(ValueError, LookupError, TypeError):
        _, spec = json.loads(text)
        for child in spec["children_spec"]:
            if child["type"] == "builtins.dict":
                for key in json.loads(child["context"]):
                    _check_names(key, "name")


def _short(text: str) -> str:
    shown = text if text.isprintable() else repr(text)[1:-1]
    return shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}..."
