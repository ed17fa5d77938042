"""Names for the tensors of a call, from their paths in the pytree of arguments or results."""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterable, Sequence
from typing import Any

from torch.utils import _pytree as pytree

_CPP_KEYWORDS = frozenset(
    word
    for line in (
        "alignas alignof and and_eq asm auto bitand bitor bool break case catch char char8_t",
        "char16_t char32_t class compl concept const consteval constexpr constinit const_cast",
        "continue co_await co_return co_yield decltype default delete do double dynamic_cast",
        "else enum explicit export extern false float for friend goto if inline int long",
        "mutable namespace new noexcept not not_eq nullptr operator or or_eq private",
        "protected public register reinterpret_cast requires return short signed sizeof",
        "static static_assert static_cast struct switch template this thread_local throw true",
        "try typedef typeid typename union unsigned using virtual void volatile wchar_t while",
        "xor xor_eq NULL errno assert",
    )
    for word in line.split()
)
_RESERVED = _CPP_KEYWORDS | frozenset(keyword.kwlist) | {"self"}


def path_text(keys: Sequence[Any]) -> str:
    """A pytree path as the user would write it: ``state.h``, ``cache[0]``, ``x["a b"]``."""
    text = ""
    for entry in keys:
        part = key(entry)
        if isinstance(part, str) and part.isidentifier():
            text += f".{part}" if text else part
        elif isinstance(part, str):
            text += f'["{part}"]'
        else:
            text += f"[{part}]"
    return text


def input_names(paths: Sequence[Sequence[Any]]) -> list[str]:
    """``tokens``, ``cache_0``, ``state_h``: a unique identifier for each path."""
    return _unique(_joined(path) for path in paths)


def output_names(
    paths: Sequence[Sequence[Any]], constants: Sequence[Sequence[Any]] = ()
) -> list[str]:
    """As for inputs; a single result is ``output``, a tuple's are ``output_0``, ...

    constants: the paths of constants, whose names come last, so that they change no other.
    """
    if len(paths) == 1 and not any(isinstance(key(k), str) for k in paths[0]):
        names = ["output"]
    else:
        names = [_output_name(path) for path in paths]
    return _unique([*names, *(_output_name(path) for path in constants)])


def _output_name(path: Sequence[Any]) -> str:
    nameless = not path or not isinstance(key(path[0]), str)
    return f"output_{_joined(path)}" if nameless else _joined(path)


def result_paths(spec: pytree.TreeSpec) -> list[tuple[Any, ...]]:
    """The path of each leaf of a structure; fields have names if their class gives them."""
    leaves = list(range(spec.num_leaves))
    try:
        flat, _ = pytree.tree_flatten_with_path(pytree.tree_unflatten(leaves, spec))
    except Exception:  # a user's container may refuse integers as contents
        flat = []
    if [leaf for _, leaf in flat] == leaves:
        return [tuple(path) for path, _ in flat]
    return _paths_of_spec(spec)


def child_keys(spec: pytree.TreeSpec) -> list[str | int]:
    """The field, dict key or index of each child of a container."""
    children = list(range(spec.num_children))
    node = pytree.SUPPORTED_NODES.get(spec.type)
    try:
        assert node is not None and node.flatten_with_keys_fn is not None
        flat, _ = node.flatten_with_keys_fn(node.unflatten_fn(children, spec.context))
    except Exception:  # a user's container may refuse integers as contents
        flat = []
    if [value for _, value in flat] == children:
        return [key(entry) for entry, _ in flat]
    return _keys_in_context(spec)


def _keys_in_context(spec: pytree.TreeSpec) -> list[str | int]:
    """A container's keys if its context lists one for each child, or else indices."""
    context = spec.context
    keys = list(context) if isinstance(context, (list, tuple)) else []
    if len(keys) != spec.num_children or not all(isinstance(k, str) for k in keys):
        return list(range(spec.num_children))
    return keys


def _paths_of_spec(spec: pytree.TreeSpec) -> list[tuple[Any, ...]]:
    """Works without instances: uses a container's keys if its context lists one for each child."""
    if spec.is_leaf():
        return [()]
    pairs = zip(_keys_in_context(spec), spec.children())
    return [(key, *rest) for key, child in pairs for rest in _paths_of_spec(child)]


def key(entry: Any) -> str | int:
    """The field, dict key or index that a pytree key stands for."""
    for attribute in ("key", "idx", "name"):
        if hasattr(entry, attribute):
            value = getattr(entry, attribute)
            return value if isinstance(value, (str, int)) else str(value)
    return entry if isinstance(entry, (str, int)) else str(entry)


def _joined(path: Iterable[Any]) -> str:
    return "_".join(str(key(k)) for k in path)


def _unique(names: Iterable[str]) -> list[str]:
    result: list[str] = []
    for raw in names:
        name = re.sub(r"\W", "_", raw, flags=re.ASCII) or "value"
        # Names with a double underscore, or a leading one, belong to the C++ implementation.
        name = re.sub(r"_{2,}", "_", name).lstrip("_") or "value"
        if name[0].isdigit():
            name = f"value_{name}"
        if name in _RESERVED:
            name += "_"
        candidate, count = name, 2
        while candidate in result:
            candidate, count = f"{name}_{count}", count + 1
        result.append(candidate)
    return result
