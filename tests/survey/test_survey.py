"""The committed table says what the survey finds, for some small entries, and knows them all."""

import os
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
if find_spec("aoti_driver") is None:  # not in Bazel
    folders = (ROOT, ROOT / "toolchain" / "driver", ROOT / "runtime" / "slim" / "tests")
    sys.path[:0] = [str(folder) for folder in folders]

from tests.survey import architectures, pipeline, survey  # noqa: E402
from tests.survey.table import Page, Row, is_operator, symbol  # noqa: E402

PAGE = survey.read()


@pytest.mark.parametrize(
    "name",
    [
        "torch.nn/linear_without_bias",
        "torch.nn/conv_transpose1d",
        "torch.nn/sdpa_causal",
        "torch.nn/upsample_bilinear2d_antialias",
        "torch/cond_linear",
        "torch/topk",
        "torch/householder",
    ],
)
def test_row(name: str, tmp_path: Path) -> None:
    found = survey.examine(architectures.BY_ID[name], tmp_path)
    assert "failed" not in found, found
    page = Page({}, set())
    page.add(name, found["batch"], found["functions"])
    assert PAGE.rows[name] == page.rows[name]
    assert page.plumbing <= PAGE.plumbing


def test_run(tmp_path: Path) -> None:
    """`--run`: compiled, linked with slim, and compared with eager PyTorch."""
    slim = Path(os.environ.get("SLIM", ROOT / "bazel-bin" / "tests" / "survey" / "libslim.a"))
    found = survey.examine(architectures.BY_ID["torch.nn/linear_without_bias"], tmp_path, slim)
    assert found.get("run") == "", found


def test_failure_is_a_row(tmp_path: Path) -> None:
    found = survey.examine(architectures.BY_ID["torch.nn/ctc_loss"], tmp_path)
    assert found == {"failed": PAGE.rows["torch.nn/ctc_loss"].failed}


def test_every_architecture_has_a_row() -> None:
    assert PAGE.rows.keys() == architectures.BY_ID.keys()
    assert len(PAGE.rows) >= 60


def test_page_is_current() -> None:
    """Also in what slim has. `python tests/survey/survey.py --only` writes the pages anew."""
    text = PAGE.text(architectures.BY_ID, survey.provided(), survey.dtypes(), pipeline.ISA)
    assert survey.PAGE.read_text(encoding="utf-8") == text
    text = PAGE.architectures(architectures.BY_ID, survey.provided())
    assert survey.ARCHITECTURES.read_text(encoding="utf-8") == text


def test_page_is_read_back() -> None:
    page = Page({}, {"aoti_torch_empty_strided"})
    page.add("torch/a", True, ["aten::x.out", "aoti_torch_cpu_mm_out", "aoti_torch_get_dtype"])
    page.add("torch/b", False, [])
    page.add_failure("torch/c", "codegen: `x` | y\n z")
    names = ["torch/a", "torch/b", "torch/c"]
    again = Page.read(page.text(names, set(), {}, "x86-64"), page.architectures(names, set()))
    assert again == page
    assert again.rows["torch/a"] == Row(True, ("aoti_torch_cpu_mm_out", "aten::x.out"))
    assert again.rows["torch/c"].failed == "codegen: 'x' / y z"


def test_names() -> None:
    assert is_operator("aten::isin.Tensor_Tensor")
    assert is_operator("aoti_torch_scatter_out")
    assert not is_operator("aoti_torch_get_dtype")
    assert symbol("aten::isin.Tensor_Tensor") == "aoti_slim_op_aten_isin_Tensor_Tensor"
    assert symbol("aten::bincount.default") == "aoti_slim_op_aten_bincount"
    assert symbol("aoti_torch_cpu_mm_out") == "aoti_torch_cpu_mm_out"


def test_time_limit(tmp_path: Path) -> None:
    found = survey.in_child("torch/topk", tmp_path, None, seconds=0)
    assert found == {"failed": "not done after 0 s"}
