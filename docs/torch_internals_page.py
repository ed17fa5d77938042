"""Writes torch_internals.md: what the driver changes and uses in PyTorch, and what is there.

A change of PyTorch shows as a change of the page: of a signature, or of the digest of a source.
"""

from __future__ import annotations

import hashlib
import importlib
import inspect
import re
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from aoti_driver.torch_internals import changes
from aoti_driver.torch_internals.entries import TIME_ONLY, Change, Option

from docs import torch_internals_uses

_HEAD = """\
<!-- Generated with the toolchain's torch: ./bazelw run //docs:update -->

# What is changed and used in PyTorch

The driver asks PyTorch for things that its public interface doesn't have. What it changes is listed
in `toolchain/driver/aoti_driver/torch_internals`, what it uses in `docs/torch_internals_uses.py`:
nothing else of PyTorch is replaced, and no other private name is used.
`//tests/unit/driver:torch_internals_test` compares the lists with the source of the driver,
`//docs:torch_internals_page_test` with PyTorch. This page is made of both.

For [an upgrade of torch](../CONTRIBUTING.md#recipe-upgrade-torch) it is the checklist. With the new
version in the lock, `./bazelw run //docs:update` writes it anew, and `git diff` has a line for each
place whose signature or source is another one. A place that PyTorch has no more is an error
with its name. When all are looked at, `CHECKED_WITH` in `entries.py` names the new version.

Signatures are without types. The eight digits behind them begin the SHA-256 of the source text.

## Replaced

Only while a step runs, in a process of its own. The last column names a test in `tests/unit/driver`
that failed when the change was left out: where it passes without, the change is needed no more.

"""

_OPTIONS = """
## Options

"""

_USES = """
## Used

Nothing of this is changed. PyTorch may change it without notice.
"""

_GONE = "this PyTorch doesn't have it"


def render() -> str:
    # A paragraph is one line, as in the other pages.
    lines = [re.sub(r"(?<=[^\n|])\n(?=[^\n])", " ", _HEAD)]
    lines += [_row("what", "instead", "why", "torch", "as it is there", "test"), _rule(6)]
    lines += [_change(change) for change in changes.CHANGES]
    lines += [_OPTIONS, _row("option", "why it is set", "torch"), _rule(3)]
    lines += [_option(option) for option in changes.OPTIONS]
    lines.append(_USES)
    for use in torch_internals_uses.USES:
        lines.append(f"\n`{use.module}`: {use.reason} (torch {', '.join(use.torch)}).\n\n")
        lines += [_row("name", "as it is there"), _rule(2)]
        lines += [_row(_code(p.partition(":")[2]), describe(p)) for p in use.places()]
    return "".join(lines)


def _change(change: Change) -> str:
    what = {
        "attribute": "",
        "object": ", of one object",
        "table": ", entries of it",
    }[change.kind]
    described = describe(change.place)
    if change.by_build:
        described = "differs between PyTorch's builds"
    return _row(
        _code(change.place) + what,
        change.instead,
        change.reason,
        ", ".join(change.torch),
        described,
        change.test if change.test == TIME_ONLY else _code(change.test),
    )


def _option(option: Option) -> str:
    owner, name = owner_of(option.place)
    if not hasattr(owner, name):
        raise LookupError(f"{option.place}: {_GONE}")
    return _row(_code(option.place), option.reason, ", ".join(option.torch))


def describe(place: str) -> str:
    """What the installed PyTorch has at the place; LookupError where it has nothing."""
    owner, name = owner_of(place)
    found = inspect.getattr_static(owner, name, None)
    if found is None:  # made when it is asked for, as operators are
        found = getattr(owner, name, None)
    if isinstance(found, (classmethod, staticmethod)):
        found = found.__func__
    if isinstance(found, property):
        found = found.fget
    found = inspect.unwrap(found) if callable(found) else found
    if inspect.isfunction(found) or inspect.isclass(found):
        kind = "class" if inspect.isclass(found) else _code(_signature(found))
        try:
            source = inspect.getsource(found)
        except OSError:  # it is made by C++
            return kind
        return f"{kind} {hashlib.sha256(source.encode()).hexdigest()[:8]}"
    if isinstance(found, types.ModuleType):
        return f"module {found.__name__}"
    if found is None or isinstance(found, types.MemberDescriptorType):
        if isinstance(owner, type) and _is_set_by_class(owner, name):
            return "attribute of objects"
        raise LookupError(f"{place}: {_GONE}")
    return type(found).__name__


def owner_of(place: str) -> tuple[Any, str]:
    module, _, path = place.partition(":")
    owner: Any = importlib.import_module(module)
    *classes, name = path.split(".")
    for part in classes:
        if not hasattr(owner, part):
            raise LookupError(f"{place}: {_GONE}")
        owner = getattr(owner, part)
    return owner, name


def _is_set_by_class(owner: type, name: str) -> bool:
    """Whether the class, or one that it is made of, gives its objects the attribute."""
    for cls in inspect.getmro(owner)[:-1]:
        if name in inspect.get_annotations(cls) or f"self.{name}" in inspect.getsource(cls):
            return True
    return False


def _signature(function: types.FunctionType) -> str:
    parameters = inspect.signature(function).parameters.values()
    plain = [p.replace(annotation=inspect.Parameter.empty) for p in parameters]
    text = str(inspect.Signature(plain))
    return re.sub(r"<function (\S+?) at 0x[0-9a-f]+>", r"\1", text)


def _code(text: str) -> str:
    return f"`{text}`".replace("|", "\\|")


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |\n"


def _rule(count: int) -> str:
    return f"|{'---|' * count}\n"


def places() -> Iterator[str]:
    yield from (change.place for change in changes.CHANGES)
    for use in torch_internals_uses.USES:
        yield from use.places()


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(render(), encoding="utf-8")
