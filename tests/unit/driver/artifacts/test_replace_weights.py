"""Other weights for a program: files that fit, and the errors about files that do not."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from aoti_driver.process import cli
from aoti_driver.program.loading import load_program
from aoti_driver.program.weights_file import read_weights, write_weights
from safetensors.torch import save_file

from tests.unit.driver.harness import Export, Result

SOURCE = """
    import torch

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.first = torch.nn.Linear(6, 8)
            self.last = torch.nn.Linear(8, 6, bias=False)
            self.tied = self.last
            self.turned = torch.nn.Parameter(torch.randn(5, 6).t())
            self.register_buffer("mean", torch.zeros(6))
            self.register_buffer("table", torch.arange(6.0), persistent=False)

        def forward(self, x):
            y = self.tied(torch.relu(self.first(x - self.mean))) + self.last(self.first(x))
            return (y * self.table + torch.tensor([1.0, 2, 3, 4, 5, 6])) @ self.turned

    def build():
        return Net()
"""

Replace = Callable[..., tuple[int, str]]


@pytest.fixture
def program(export: Export) -> Result:
    result = export(SOURCE, {"x": "float32[batch, 6]"}, {"batch": "1..16"})
    assert result.code == 0, result.error
    return result


@pytest.fixture
def replace(program: Result, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Replace:
    def run(weights: Path) -> tuple[int, str]:
        spec = tmp_path / "spec.json"
        spec.write_text(json.dumps({"label": "//pkg:tuned", "given": "//pkg:w"}), encoding="utf-8")
        code = cli.main(
            [
                "replace_weights",
                f"--spec={spec}",
                f"--graph={program.graph}",
                f"--manifest={program.manifest_path}",
                f"--weights={program.weights}",
                f"--new_weights={weights}",
                f"--out={tmp_path / 'replaced.safetensors'}",
            ]
        )
        return code, capsys.readouterr().err

    return run


def state_dict(program: Result, seed: int = 3) -> dict[str, torch.Tensor]:
    """What a fine-tuned module's state_dict() has, without repetitions."""
    torch.manual_seed(seed)
    names = ("first.weight", "first.bias", "last.weight", "turned", "mean")
    shapes = dict(program.program().state_dict)
    return {name: torch.randn(shapes[name].shape) for name in names}


def saved(path: Path, tensors: dict[str, torch.Tensor]) -> Path:
    save_file({name: t.contiguous() for name, t in tensors.items()}, path)
    return path


def expected(tensors: dict[str, torch.Tensor], x: torch.Tensor) -> torch.Tensor:
    def first(x: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.linear(x, tensors["first.weight"], tensors["first.bias"])

    y = torch.relu(first(x - tensors["mean"])) @ tensors["last.weight"].t()
    y = y + first(x) @ tensors["last.weight"].t()
    return (y * torch.arange(6.0) + torch.tensor([1.0, 2, 3, 4, 5, 6])) @ tensors["turned"]


def test_a_state_dict(program: Result, replace: Replace, tmp_path: Path) -> None:
    tensors = state_dict(program)
    code, error = replace(saved(tmp_path / "new.safetensors", tensors))
    assert code == 0, error
    weights = read_weights(tmp_path / "replaced.safetensors")
    module = load_program(program.graph, program.manifest, weights).module()
    x = torch.randn(4, 6)
    torch.testing.assert_close(module(x), expected(tensors, x))


def test_the_program_s_own_weights_give_the_same_file(
    program: Result, replace: Replace, tmp_path: Path
) -> None:
    code, error = replace(program.weights)
    assert code == 0, error
    assert (tmp_path / "replaced.safetensors").read_bytes() == program.weights.read_bytes()


def test_tied_tensors(program: Result, replace: Replace, tmp_path: Path) -> None:
    tensors = state_dict(program)
    both = {**tensors, "tied.weight": tensors["last.weight"].clone()}
    assert replace(saved(tmp_path / "both.safetensors", both))[0] == 0
    other = {name: t for name, t in both.items() if name != "last.weight"}
    assert replace(saved(tmp_path / "other.safetensors", other))[0] == 0
    differ = {**tensors, "tied.weight": tensors["last.weight"] + 1}
    code, error = replace(saved(tmp_path / "differ.safetensors", differ))
    assert code == 1
    assert '"last.weight" and "tied.weight" are one tensor in the program' in error


def test_what_does_not_fit(program: Result, replace: Replace, tmp_path: Path) -> None:
    tensors = state_dict(program)
    tensors["first.wieght"] = tensors.pop("first.weight")
    tensors["first.bias"] = tensors["first.bias"].to(torch.float16)
    tensors["last.weight"] = torch.zeros(6, 9)
    code, error = replace(saved(tmp_path / "new.safetensors", tensors))
    assert code == 1
    assert error.startswith("//pkg:tuned: weights = //pkg:w: the file does not fit the program:")
    for line in (
        "1 tensor missing:",
        'first.weight  float32[8, 6] (did you mean "first.wieght"?)',
        "1 tensor not in the program:",
        "first.wieght  float32[8, 6]",
        "2 tensors of another shape or dtype:",
        "first.bias  is float16[8], the program has float32[8]",
        "last.weight  is float32[6, 9], the program has float32[6, 8]",
        "names are those of the exported module's state dict",
    ):
        assert line in error, error
    assert not (tmp_path / "replaced.safetensors").exists()


def test_persistent_buffers_are_weights(program: Result, replace: Replace, tmp_path: Path) -> None:
    """A missing one would silently keep the old model's value."""
    tensors = state_dict(program)
    del tensors["mean"]
    code, error = replace(saved(tmp_path / "new.safetensors", tensors))
    assert code == 1 and "mean  float32[6]" in error


def test_other_files(replace: Replace, tmp_path: Path) -> None:
    path = tmp_path / "text.safetensors"
    path.write_text("these are no weights")
    code, error = replace(path)
    assert code == 1 and "//pkg:w: this is not a safetensors file" in error
    write_weights(path, {"first.weight": torch.zeros(8, 6)})
    path.write_bytes(path.read_bytes()[:-1])
    code, error = replace(path)
    assert code == 1 and "this safetensors file is cut off" in error


def test_a_file_that_names_its_program(program: Result, replace: Replace, tmp_path: Path) -> None:
    path = tmp_path / "new.safetensors"
    tensors = {name: t.contiguous() for name, t in state_dict(program).items()}
    digest = program.manifest.graph_sha256
    save_file(tensors, path, {"rules_aoti.program": digest})
    assert replace(path)[0] == 0
    save_file(tensors, path, {"rules_aoti.program": "0123"})
    assert replace(path) == (
        1,
        "//pkg:tuned: weights = //pkg:w: its metadata says that it was made for the program 0123, "
        f"but the program of //pkg:m is {digest}. Make the file with this program, or leave "
        '"rules_aoti.program" out of its metadata if its tensors mean the same.\n',
    )


def test_packed_weights(replace: Replace, tmp_path: Path) -> None:
    weights = tmp_path / "packed.safetensors"
    save_file({"first.weight#gemm_f32": torch.zeros(8, dtype=torch.uint8)}, weights)
    code, error = replace(weights)
    assert code == 1
    assert error.strip() == (
        '//pkg:tuned: weights = //pkg:w: "first.weight#gemm_f32" is packed for one program '
        "on the slim runtime; expected the tensors as the module has them. Give the file that they "
        'were packed from: the output group "weights" of its aoti_model or aoti_library, or a '
        "saved state dict."
    )


def test_a_square_weight_kept_transposed_is_refused(
    export: Export, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = SOURCE.replace("torch.randn(5, 6)", "torch.randn(6, 6)")
    program = export(source, {"x": "float32[batch, 6]"}, {"batch": "1..16"})
    new = saved(tmp_path / "new.safetensors", state_dict(program))
    spec = tmp_path / "spec.json"
    spec.write_text(json.dumps({"label": "//pkg:tuned", "given": "//pkg:w"}), encoding="utf-8")
    code = cli.main(
        [
            "replace_weights",
            f"--spec={spec}",
            f"--graph={program.graph}",
            f"--manifest={program.manifest_path}",
            f"--weights={program.weights}",
            f"--new_weights={new}",
            f"--out={tmp_path / 'out'}",
        ]
    )
    error = capsys.readouterr().err
    assert code == 1 and '"turned" is a view of its memory (strides [1, 6])' in error
    assert "contiguous()" in error
