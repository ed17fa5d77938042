"""The lists of what the driver changes and uses in PyTorch have all of it, and nothing more."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import aoti_driver
import pytest
from aoti_driver.cuda import device, sorts
from aoti_driver.inductor import config_options
from aoti_driver.torch_internals import changes, entries, patching

from docs import torch_internals_uses
from tests.unit.driver.torch_internals.scan import Source

PACKAGE = Path(str(aoti_driver.__file__)).parent
ROOM = PACKAGE / "torch_internals"
TESTS = Path(__file__).parents[1]
_LISTED = [place for use in torch_internals_uses.USES for place in use.places()]
_PLACES = [change.place for change in changes.CHANGES]


def files() -> Iterator[Path]:
    return (path for path in sorted(PACKAGE.rglob("*.py")) if ROOM not in path.parents)


def changes_in(path: Path) -> list[str]:
    return [f"{path.name}:{line}: {what}" for line, what in Source(path).changes()]


def unlisted(path: Path) -> list[str]:
    """The private names in a file that no list has."""
    dotted = {place.replace(":", ".") for place in (*_LISTED, *_PLACES)}
    starts = {name.rsplit(".", end)[0] for name in dotted for end in range(name.count("."))}
    last = {name.rpartition(".")[2] for name in dotted}
    found = []
    for line, name in Source(path).private():
        # What a listed name has: a public method of a class, a member of an enumeration.
        known = name in starts or any(name.startswith(f"{listed}.") for listed in dotted)
        if not (known if "." in name else name in last):
            found.append(f"{path.name}:{line}: {name}")
    return found


def test_nothing_else_is_changed() -> None:
    assert [text for path in files() for text in changes_in(path)] == []


def test_nothing_else_is_private() -> None:
    assert [text for path in files() for text in unlisted(path)] == []


def test_every_entry_is_one_and_needed() -> None:
    texts = "".join(path.read_text(encoding="utf-8") for path in files())
    options = [option.place for option in changes.OPTIONS]
    assert [p for p, n in Counter([*_PLACES, *_LISTED, *options]).items() if n > 1] == []
    words = set(re.findall(r"\w+", texts))
    names = {place: place.partition(":")[2].split(".") for place in (*_PLACES, *_LISTED, *options)}
    assert [place for place, name in names.items() if name[-1] not in words] == []


def test_every_change_names_a_test() -> None:
    for change in changes.CHANGES:
        if change.test == entries.TIME_ONLY:
            continue
        file, _, name = change.test.partition("::")
        assert f"def {name}(" in (TESTS / file).read_text(encoding="utf-8"), change.place


def test_inductors_options() -> None:
    """``cpp.simdlen`` is instruction_set.py's, the last two are set for other code of Inductor."""
    decided = config_options.decided_options("", "", ("", ""))
    names = {*decided, *config_options.DEFAULTS, *device.OPTIONS, *sorts.OPTIONS}
    names.update(device.MEASURED_OPTIONS)
    names.add("cpp.simdlen")
    listed = {o.place for o in changes.OPTIONS if o.place.startswith("torch._inductor.config:")}
    assert {f"torch._inductor.config:{name}" for name in names} == listed


def test_what_is_not_listed_is_not_changed() -> None:
    with pytest.raises(AssertionError, match='lists no attribute "os:getcwd"'):
        patching.original("os:getcwd")
    with (
        pytest.raises(AssertionError, match='lists no attribute "os:getcwd"'),
        patching.replaced({"os:getcwd": None}),
    ):
        pass
    with (
        pytest.raises(AssertionError, match='lists no table "torch:load"'),
        patching.entries_kept("torch:load", []),
    ):
        pass
    with pytest.raises(AssertionError, match="no_such is not listed"):
        patching.listed_options("torch._inductor.config", {"no_such": 1})


@pytest.mark.parametrize(
    "text",
    [
        "import torch\ntorch.load = None",
        "import torch\ndel torch.load",
        "import torch as t\nt.fx.config.flag = True",
        "from torch._inductor import ir as i\ni.ExternKernel.f = None",
        "def f():\n    from torch._inductor import ir\n    setattr(ir, 'f', None)",
        "import sympy\nvars(sympy)['sympify'] = None",
        "import torch\nimport importlib\ncpp = importlib.import_module('torch.a')\ncpp.b = 1",
        "import importlib\nA = 'torch.a'\nx = importlib.import_module(A)\nx.b[0] += 1",
        "from torch._inductor import lowering\ntable = lowering.lowerings\ntable.pop(1)",
        "from torch._inductor import config\nwith config.patch(a=1): pass",
        "from torch._inductor.config import patch as p\nimport unittest.mock",
        "from unittest import mock",
        "def f(graph):\n    graph._codegen = None",
        "def f(module):\n    del module._parameters['a']",
    ],
)
def test_what_is_a_change(tmp_path: Path, text: str) -> None:
    path = tmp_path / "a.py"
    path.write_text(text, encoding="utf-8")
    assert len(changes_in(path)) == 1


@pytest.mark.parametrize(
    "text",
    [
        "class A:\n    def f(self):\n        self._a = 1",
        "import os\nos.environ['A'] = ''\ntable = {}\ntable.update(a=1)",
        "import torch\nx = torch.zeros(1)\nx.b = 1",
    ],
)
def test_what_is_none(tmp_path: Path, text: str) -> None:
    path = tmp_path / "a.py"
    path.write_text(text, encoding="utf-8")
    assert changes_in(path) == []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("from torch._inductor import comms", "torch._inductor.comms"),
        ("import torch\ntorch._C._secret()", "torch._C._secret"),
        ("import torch\ntorch._ops.Other.x", "torch._ops.Other.x"),
        ("def f(op):\n    return op._hidden.b", "_hidden"),
        ("def f(op):\n    return getattr(op, '_hidden', None)", "_hidden"),
        ("import torch\ntorch._ops.OpOverload.name", None),
        ("def f(op):\n    return op._schema", None),
        ("class A:\n    def _f(self, other):\n        return other._f()", None),
        ("from torch.utils import _pytree\n_pytree.keystr", None),
    ],
)
def test_what_is_private(tmp_path: Path, text: str, found: str | None) -> None:
    path = tmp_path / "a.py"
    path.write_text(text, encoding="utf-8")
    lines = text.count("\n") + 1
    assert unlisted(path) == ([f"a.py:{lines}: {found}"] if found else [])
