"""torch_internals.md shows the installed PyTorch, and every entry was compared with it."""

import difflib
from pathlib import Path

import pytest
import torch
from aoti_driver.contract.torch_version import public_version
from aoti_driver.torch_internals import changes, entries

from docs import torch_internals_page, torch_internals_uses

PAGE = Path(__file__).parent / "torch_internals.md"


def test_the_page_shows_this_torch() -> None:
    """A line of the difference is a place to look at; then ./bazelw run //docs:update."""
    written = PAGE.read_text(encoding="utf-8").splitlines()
    there = torch_internals_page.render().splitlines()
    assert list(difflib.unified_diff(written, there, lineterm="", n=0)) == []


def test_every_entry_was_compared_with_this_torch() -> None:
    installed = public_version(torch.__version__)
    known: list[entries.Change | entries.Option | entries.Use] = []
    known += [*changes.CHANGES, *changes.OPTIONS, *torch_internals_uses.USES]
    assert [entry for entry in known if installed not in entry.torch] == []


@pytest.mark.parametrize(
    "place",
    [
        "torch:no_such",
        "torch._inductor.ir:NoSuch.codegen",
        "torch._inductor.ir:FallbackKernel.no_such",
    ],
)
def test_a_place_that_is_gone(place: str) -> None:
    with pytest.raises(LookupError, match="doesn't have it"):
        torch_internals_page.describe(place)


def test_an_option_that_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    gone = entries.Option("torch._inductor.config:cpp.no_such", "")
    monkeypatch.setattr(changes, "OPTIONS", (gone,))
    with pytest.raises(LookupError, match=r"cpp\.no_such: this PyTorch doesn't have it"):
        torch_internals_page.render()


def test_what_a_place_is_described_by() -> None:
    described = torch_internals_page.describe
    assert described("torch._inductor.ir:FallbackKernel.export_extern_kernel_node").startswith(
        "`(self)` "
    )
    assert described("torch._inductor.kernel.conv:ir") == "module torch._inductor.ir"
    assert described("torch._inductor.graph:GraphLowering.graph_inputs") == "attribute of objects"
