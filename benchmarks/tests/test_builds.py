from __future__ import annotations

import urllib.error
import urllib.request
from pathlib import Path

import pytest

from benchmarks.builds import packages
from benchmarks.builds.client import Bazel, BuildError
from benchmarks.builds.edits import EDITS, Edit
from benchmarks.builds.http_cache import serve
from benchmarks.builds.results import Case, Results, markdown, remarks, rows, targets

QUERIED = """\
# /some/where/BUILD.bazel:8:12
torch_export(
  name = "mlp.program",
  tags = ["manual"],
  generator_name = "mlp",
  module = "//benchmarks:models_py",
  entry_point = "benchmarks.models.mlp:build",
  inputs = {"input": "float32[batch, 64]"},
  strict = False,
)
# Rule torch_export instantiated at (most recent call last):
"""


class Answers(Bazel):
    """Bazel that has said something already."""

    def __init__(self, output: str = "", printed: str = "") -> None:
        self._answer = output
        self.printed = printed

    def output(self, *_: str) -> str:
        return self._answer


def case(**seconds: list[float]) -> Case:
    named = {name.replace("_", " "): values for name, values in seconds.items()}
    return Case("mlp", 1, {"cold": 0.35}, named)


def test_a_model_is_declared_with_the_attributes_of_another_package(tmp_path: Path) -> None:
    attributes = packages.declared(Answers(QUERIED), "//benchmarks:mlp.program")
    assert attributes == {
        "module": "//benchmarks:models_py",
        "entry_point": "benchmarks.models.mlp:build",
        "inputs": {"input": "float32[batch, 64]"},
        "strict": False,
    }
    assert packages.declare(tmp_path, "new/one", [("mlp", attributes)]) == ["//new/one:mlp"]
    text = (tmp_path / "new/one/BUILD.bazel").read_text(encoding="utf-8")
    assert "    inputs = {'input': 'float32[batch, 64]'},\n" in text
    assert 'name = "mlp"' in text
    assert f'name = "{packages.program("mlp")}"' in text and 'deps = [":mlp"]' in text
    assert packages.program("//new/one:mlp") == "//new/one:mlp_program"


def test_what_ran_is_read_from_bazels_summary() -> None:
    line = "INFO: 14 processes: 5 remote cache hit, 8 internal, 1 linux-sandbox.\nINFO: more\n"
    expected = {"remote cache hit": 5, "internal": 8, "linux-sandbox": 1}
    assert Answers(printed="INFO: Build\n" + line).ran() == expected
    assert Answers(printed="INFO: 1 process: 1 internal.\n").ran() == {"internal": 1}
    with pytest.raises(BuildError, match="no summary"):
        Answers(printed="INFO: nothing").ran()


def test_the_cache_keeps_what_it_is_given(tmp_path: Path) -> None:
    data = bytes(range(256)) * 10_000
    with serve(tmp_path) as address:
        url = f"{address}/cas/0123"
        with pytest.raises(urllib.error.HTTPError, match="404"):
            urllib.request.urlopen(url)
        urllib.request.urlopen(urllib.request.Request(url, data, method="PUT"))
        assert urllib.request.urlopen(url).read() == data
        with pytest.raises(urllib.error.HTTPError, match="404"):
            urllib.request.urlopen(f"{address}/ac/0123")
    assert (tmp_path / "cas" / "0123").read_bytes() == data


def test_ratios_are_of_medians_and_measured_by_the_bar() -> None:
    good = case(stock=[10.0, 30.0, 20.0], cold=[7.0, 5.0, 90.0])
    assert good.ratio("cold") == 0.35
    assert good.missed() == {}
    bad = case(stock=[10.0], cold=[4.0])
    assert bad.missed() == {"cold": (0.4, 0.35)}
    assert case(stock=[10.0]).missed() == {}


def test_a_build_after_an_edit_is_compared_with_torch_compile_after_it() -> None:
    edited = Case("mlp", 1, {"edited": 0.5}, {"stock": [30.0], "compiled": [8.0], "edited": [6.0]})
    assert edited.ratio("edited") == 0.75
    assert edited.ratio("compiled") == 8 / 30
    results = Results({}, [edited])
    assert targets(results) == ["mlp, edited: 0.75 of compiled, the target is 0.50."]
    assert rows(results)[1][-2:] == ["8.0 s (0.27)", "6.0 s (0.75)"]


@pytest.mark.parametrize("name", EDITS)
def test_edits_change_the_sources_of_this_tree_and_change_them_back(
    name: str, tmp_path: Path
) -> None:
    edit = EDITS[name]
    path = tmp_path / edit.file
    path.parent.mkdir(parents=True)
    text = Path(edit.file).read_text(encoding="utf-8")
    path.write_text(text, encoding="utf-8")
    with pytest.raises(KeyboardInterrupt), edit.made(tmp_path):
        assert edit.after in path.read_text(encoding="utf-8")
        raise KeyboardInterrupt
    assert path.read_text(encoding="utf-8") == text


def test_an_edit_of_another_text_is_an_error(tmp_path: Path) -> None:
    edit = Edit("model.py", "a = 1", "a = 2")
    for text in ("b = 1", "a = 1; a = 1"):
        (tmp_path / "model.py").write_text(text, encoding="utf-8")
        with (
            pytest.raises(ValueError, match=r"model\.py: expected 'a = 1' once"),
            edit.made(tmp_path),
        ):
            pass
        assert (tmp_path / "model.py").read_text(encoding="utf-8") == text


def test_reports() -> None:
    results = Results({}, [case(stock=[10.0], stock_warm=[8.0], cold=[4.0])], torch_unpacked=False)
    head, row = rows(results)
    assert row == ["mlp", "10.0 s", "8.0 s (0.80)", "-", "4.0 s (0.40)", *["-"] * 5]
    assert len(head) == len(row)
    assert targets(results) == ["mlp, cold: 0.40 of stock, the target is 0.35."]
    assert targets(Results({}, [case(stock=[10.0], cold=[3.0])])) == ["Each target is reached."]
    assert targets(Results({}, [case()])) == []
    assert remarks(results) == [
        "The client that took everything from the cache had not unpacked torch."
    ]
    assert remarks(Results({}, [case()])) == []
    assert "target" not in markdown(results, "A CPU.")
    assert "| mlp | 10.0 s | 8.0 s (0.80) | - | 4.0 s (0.40) | - | - | - | - | - |" in markdown(
        results, "A CPU."
    )
    assert Results.from_json(results.to_json()) == results
