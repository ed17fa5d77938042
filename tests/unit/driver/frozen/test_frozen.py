"""Programs in the source tree: written, compared with their source, and read back."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from aoti_driver.base import digests
from aoti_driver.contract.manifest import ProgramManifest
from aoti_driver.contract.manifest_file import read_manifest, to_json
from aoti_driver.frozen import freeze, frozen_program
from aoti_driver.process import cli
from aoti_driver.program import graph_text
from aoti_driver.program.loading import load_program
from aoti_driver.program.weights_file import read_weights

from tests.unit.driver.harness import Export, Result

SOURCE = """
    import torch

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = torch.nn.Linear(8, 4)

        def forward(self, x):
            return torch.relu(self.linear(x))

    def build():
        return Net()
"""
INPUTS = {"x": "float32[batch, 8]"}
DIMS = {"batch": "1..16"}
OTHER_WEIGHTS = SOURCE.replace("return Net()", "torch.manual_seed(7); return Net()")

Capture = pytest.CaptureFixture[str]


@dataclasses.dataclass
class Ran:
    code: int
    out: str
    err: str


@pytest.fixture
def drive(capsys: Capture) -> Callable[..., Ran]:
    def run(*args: object) -> Ran:
        capsys.readouterr()
        code = cli.main([str(a) for a in args])
        captured = capsys.readouterr()
        return Ran(code, captured.out, captured.err)

    return run


Drive = Callable[..., Ran]


def freeze_flags(program: Result, workspace: Path | str, *more: str) -> list[str]:
    return [
        "freeze",
        "--target=//pkg:m.freeze",
        "--model=//pkg:m",
        "--package=pkg",
        "--folder=m.frozen",
        f"--graph={program.graph}",
        f"--weights={program.weights}",
        f"--manifest={program.manifest_path}",
        f"--workspace={workspace}",
        f"--working_directory={workspace}",
        *more,
    ]


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    path = tmp_path / "workspace"
    (path / "pkg").mkdir(parents=True)
    return path


@pytest.fixture
def folder(export: Export, drive: Drive, workspace: Path) -> Path:
    ran = drive(*freeze_flags(export(SOURCE, INPUTS, DIMS), workspace))
    assert ran.code == 0, ran.err
    return workspace / "pkg" / "m.frozen"


def names(path: Path) -> list[str]:
    return sorted(p.name for p in path.iterdir())


def thaw(drive: Drive, folder: Path, out: Path) -> Ran:
    spec = folder.parent.parent / "thaw.json"
    spec.write_text(json.dumps({"label": "//other:m2", "name": "m2"}), encoding="utf-8")
    return drive(
        "thaw",
        f"--spec={spec}",
        f"--graph={folder / 'graph.json'}",
        f"--manifest={folder / 'manifest.json'}",
        *(f"--out_{n}={out / n}" for n in ("graph", "manifest", "locations")),
    )


def thaw_weights(drive: Drive, folder: Path, out: Path, weights: Path | None) -> Ran:
    spec = folder.parent.parent / "thaw_weights.json"
    spec.write_text(json.dumps({"label": "//other:m2", "given": "//other:w"}), encoding="utf-8")
    flags = [f"--weights={weights}"] if weights else []
    info = folder / "weights.json"
    return drive("thaw_weights", f"--spec={spec}", f"--info={info}", f"--out={out}", *flags)


def compare(drive: Drive, folder: Path, program: Result) -> Ran:
    return drive(
        "frozen_diff",
        "--label=//pkg:m",
        "--freeze=//pkg:m.freeze",
        f"--graph={program.graph}",
        f"--weights={program.weights}",
        f"--manifest={program.manifest_path}",
        f"--frozen_graph={folder / 'graph.json'}",
        f"--frozen_manifest={folder / 'manifest.json'}",
        f"--frozen_weights={folder / 'weights.json'}",
    )


# -- writing --


def test_writes_text_that_can_be_reviewed(folder: Path) -> None:
    assert names(folder) == ["graph.json", "manifest.json", "weights.json"]
    for name in names(folder):
        text = (folder / name).read_text(encoding="utf-8")
        assert text.endswith("\n") and text.count("\n") > 5
        assert max(map(len, text.splitlines())) < 400  # torch's own pytree specs


def test_says_what_to_do_next(export: Export, drive: Drive, workspace: Path) -> None:
    program = export(SOURCE, INPUTS, DIMS)
    ran = drive(*freeze_flags(program, workspace))
    assert "//pkg:m.freeze: pkg/m.frozen/" in ran.out
    assert "graph.json" in ran.out and "written" in ran.out
    assert f"sha256 {digests.of_file(program.weights)[0]}" in ran.out
    assert 'frozen = glob(["m.frozen/*"])' in ran.out and "pkg/BUILD.bazel" in ran.out
    again = drive(*freeze_flags(program, workspace))
    assert again.out.count("as it was") == 3 and "written" not in again.out


def test_weights_on_demand(export: Export, drive: Drive, workspace: Path) -> None:
    program = export(SOURCE, INPUTS, DIMS)
    folder = workspace / "pkg" / "m.frozen"
    assert drive(*freeze_flags(program, workspace, "--weights_to=up.safetensors")).code == 0
    assert (workspace / "up.safetensors").read_bytes() == program.weights.read_bytes()
    assert "weights.safetensors" not in names(folder)
    assert drive(*freeze_flags(program, workspace, "--with_weights")).code == 0
    assert (folder / "weights.safetensors").read_bytes() == program.weights.read_bytes()
    # Weights that lie there are kept up to date without being asked for.
    (folder / "weights.safetensors").write_bytes(b"old")
    assert drive(*freeze_flags(program, workspace)).code == 0
    assert (folder / "weights.safetensors").read_bytes() == program.weights.read_bytes()


def test_url_stays_as_long_as_the_weights_do(export: Export, drive: Drive, workspace: Path) -> None:
    program = export(SOURCE, INPUTS, DIMS)
    info = workspace / "pkg" / "m.frozen" / "weights.json"
    drive(*freeze_flags(program, workspace, "--url=https://example.org/w"))
    drive(*freeze_flags(program, workspace))
    assert json.loads(info.read_text())["url"] == "https://example.org/w"
    other = export(SOURCE.replace("Linear(8, 4)", "Linear(8, 5)"), INPUTS, DIMS)
    drive(*freeze_flags(other, workspace))
    assert json.loads(info.read_text())["url"] == ""


def test_refuses_to_guess_the_source_tree(export: Export, drive: Drive, tmp_path: Path) -> None:
    program = export(SOURCE, INPUTS, DIMS)
    ran = drive(*freeze_flags(program, ""))
    assert ran.code == 1
    assert "bazel run //pkg:m.freeze" in ran.err and "only `bazel run` says where" in ran.err
    ran = drive(*freeze_flags(program, tmp_path / "nowhere"))
    assert ran.code == 1 and "//pkg:m.freeze: there is no folder pkg in" in ran.err
    ran = drive(*freeze_flags(program, tmp_path, "--repository=rules_other"))
    assert ran.code == 1 and "belongs to another module (rules_other)" in ran.err


def test_half_of_a_freeze_is_never_seen(
    export: Export, drive: Drive, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = {name: (folder / name).read_bytes() for name in names(folder)}
    other = export(SOURCE.replace("relu", "tanh"), INPUTS, DIMS)

    def full_disk(source: str, target: Path) -> None:
        target.write_bytes(b"half")
        raise OSError(28, "No space left on device", str(target))

    monkeypatch.setattr(freeze, "_copy", full_disk)
    ran = drive(*freeze_flags(other, folder.parents[1], "--with_weights"))
    assert ran.code == 1 and "No space left on device; nothing was changed" in ran.err
    assert {name: (folder / name).read_bytes() for name in names(folder)} == before


def test_a_folder_that_is_read_only(export: Export, drive: Drive, workspace: Path) -> None:
    (workspace / "pkg" / "m.frozen").write_text("a file in its place")
    ran = drive(*freeze_flags(export(SOURCE, INPUTS, DIMS), workspace))
    assert ran.code == 1 and "//pkg:m.freeze: can't write" in ran.err


# -- reading --


def test_the_same_program_comes_back(
    export: Export, drive: Drive, workspace: Path, tmp_path: Path
) -> None:
    program = export(SOURCE, INPUTS, DIMS)
    drive(*freeze_flags(program, workspace))
    folder = workspace / "pkg" / "m.frozen"
    out = tmp_path / "out"
    ran = thaw(drive, folder, out)
    assert ran.code == 0 and ran.err == ""
    assert (out / "graph").read_bytes() == program.graph.read_bytes()
    manifest = read_manifest(out / "manifest", ProgramManifest)
    assert manifest == dataclasses.replace(program.manifest, label="//other:m2", name="m2")
    assert json.loads((out / "locations").read_text()) == {}
    assert thaw_weights(drive, folder, out / "weights", program.weights).code == 0
    loaded = load_program(out / "graph", manifest, read_weights(out / "weights"))
    x = torch.randn(3, 8)
    expected = program.program().module()(x)
    torch.testing.assert_close(loaded.module()(x), expected, rtol=0, atol=0)


@pytest.mark.parametrize(
    ("name", "old", "new", "message"),
    [
        ("graph.json", "aten.relu", "aten.tanh", "do not belong together"),
        ("manifest.json", '"batch"', '"rows"', None),
        ("manifest.json", '"schema_version": 2', '"schema_version": 9', "schema_version 9"),
        ("manifest.json", '"strict"', '"struct"', "unknown field 'struct'"),
        ("graph.json", '"nodes"', "nodes", "frozen graph.json: this is not a graph"),
    ],
)
def test_damaged_files(
    drive: Drive, folder: Path, tmp_path: Path, name: str, old: str, new: str, message: str | None
) -> None:
    text = (folder / name).read_text()
    assert old in text
    (folder / name).write_text(text.replace(old, new))
    ran = thaw(drive, folder, tmp_path / "out")
    if message is None:  # names of dims are the manifest's own
        assert ran.code == 0
        return
    assert ran.code == 1 and "//other:m2" in ran.err and message in ran.err, ran.err
    assert not (tmp_path / "out" / "graph").exists()
    if name == "manifest.json" or "nodes" not in old:
        assert "Freeze the program anew" in ran.err


def frozen_by(folder: Path, version: str, change: Callable[[str], str] = str) -> None:
    """Makes the folder what another torch would have written."""
    document = json.loads(change((folder / "graph.json").read_text()))
    document["program"]["torch_version"] = version
    (folder / "graph.json").write_text(graph_text.pretty(document))
    _, sha256 = frozen_program.read_graph(folder / "graph.json", "")
    manifest = read_manifest(folder / "manifest.json", ProgramManifest)
    changed = dataclasses.replace(manifest, torch_version=version, graph_sha256=sha256)
    (folder / "manifest.json").write_text(to_json(changed))


def test_another_torch_that_fits(drive: Drive, folder: Path, tmp_path: Path) -> None:
    frozen_by(folder, "2.12.1")
    ran = thaw(drive, folder, tmp_path / "out")
    assert ran.code == 0, ran.err
    assert f"//other:m2: frozen by torch 2.12.1, compiled by torch {torch.__version__}" in ran.err
    manifest = read_manifest(tmp_path / "out" / "manifest", ProgramManifest)
    assert manifest.torch_version == torch.__version__  # what the compiled model runs with


def test_another_build_of_the_same_torch(
    export: Export, drive: Drive, folder: Path, tmp_path: Path
) -> None:
    """PyPI has the one for CUDA, PyTorch's own index the one for CPUs: one program."""
    graph = json.loads((folder / "graph.json").read_text())
    version = graph["program"]["torch_version"]
    assert version == torch.__version__.split("+")[0]
    manifest = read_manifest(folder / "manifest.json", ProgramManifest)
    changed = dataclasses.replace(manifest, torch_version=f"{version}+another")
    (folder / "manifest.json").write_text(to_json(changed))
    ran = thaw(drive, folder, tmp_path / "out")
    assert (ran.code, ran.err) == (0, "")
    assert compare(drive, folder, export(SOURCE, INPUTS, DIMS)).code == 0


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("torch.ops.aten.relu.default", "torch.ops.aten.relu_of_tomorrow.default", "tomorrow"),
        ('"major": 8', '"major": 99', "99"),
    ],
)
def test_another_torch_that_does_not_fit(
    drive: Drive, folder: Path, tmp_path: Path, old: str, new: str, reason: str
) -> None:
    assert old in (folder / "graph.json").read_text()
    frozen_by(folder, "3.1.0", lambda text: text.replace(old, new))
    ran = thaw(drive, folder, tmp_path / "out")
    assert ran.code == 1
    assert f"frozen by torch 3.1.0, and the toolchain's torch {torch.__version__}" in ran.err
    assert reason in ran.err and 'torch.toolchain(version = "3.1.0")' in ran.err, ran.err


def test_weights_are_the_frozen_ones(
    export: Export, drive: Drive, folder: Path, tmp_path: Path
) -> None:
    ran = thaw_weights(drive, folder, tmp_path / "w", None)
    assert ran.code == 1 and "comes without its weights: sha256 " in ran.err
    assert "Give them as `weights` of torch_import" in ran.err
    other = export(OTHER_WEIGHTS, INPUTS, DIMS)
    ran = thaw_weights(drive, folder, tmp_path / "w", other.weights)
    assert ran.code == 1 and "//other:m2: weights //other:w: these are not the weights" in ran.err
    assert "tensors that differ: linear.weight, linear.bias" in ran.err or (
        "tensors that differ: linear.bias, linear.weight" in ran.err
    )
    assert "aoti_library" in ran.err and not (tmp_path / "w").exists()
    (tmp_path / "text").write_text("hello")
    ran = thaw_weights(drive, folder, tmp_path / "w", tmp_path / "text")
    assert ran.code == 1 and "not a safetensors file" in ran.err


# -- comparing --


def test_no_difference(export: Export, drive: Drive, folder: Path) -> None:
    ran = compare(drive, folder, export(SOURCE, INPUTS, DIMS))
    assert ran.code == 0 and "the source exports the frozen program" in ran.out


@pytest.mark.parametrize(
    ("source", "inputs", "dims", "lines"),
    [
        (
            SOURCE.replace("torch.relu(self.linear(x))", "torch.tanh(self.linear(x))"),
            INPUTS,
            DIMS,
            ["-relu: float32[s", "+tanh: float32[s", "= aten.tanh.default(self=linear)"],
        ),
        (SOURCE, INPUTS, {"batch": "1..32"}, ["-dims.batch.max: 16", "+dims.batch.max: 32"]),
        (
            SOURCE,
            {"x": "float32[rows, 8]"},
            {"rows": "1..16"},
            ["-dims.batch: alias null, max 16, min 1", "+dims.rows: ", "+inputs.x.shape: [rows"],
        ),
        (
            OTHER_WEIGHTS,
            INPUTS,
            DIMS,
            ["weights (-frozen, +source):", " linear.weight: other values"],
        ),
        (
            SOURCE.replace("Linear(8, 4)", "Linear(8, 4, bias=False)"),
            INPUTS,
            DIMS,
            ["-constants.linear.bias: ", "-linear.bias", "-input p_linear_bias: float32[4]"],
        ),
    ],
)
def test_differences(
    export: Export,
    drive: Drive,
    folder: Path,
    source: str,
    inputs: dict[str, str],
    dims: dict[str, str],
    lines: list[str],
) -> None:
    program = export(source, inputs, dims)
    assert program.code == 0, program.error
    ran = compare(drive, folder, program)
    assert ran.code == 1
    assert "//pkg:m: the source no longer exports the program that is frozen" in ran.err
    for line in lines:
        assert line in ran.err, ran.err
    assert "bazel run //pkg:m.freeze" in ran.err


def test_a_difference_of_metadata_alone_is_shown(
    export: Export, drive: Drive, folder: Path
) -> None:
    renamed = export(SOURCE.replace("Net", "Network"), INPUTS, DIMS)
    ran = compare(drive, folder, renamed)
    assert ran.code == 1 and "m.Network" in ran.err and "m.Net;" in ran.err, ran.err


def test_torch_versions_come_first(export: Export, drive: Drive, folder: Path) -> None:
    frozen_by(folder, "2.12.1")
    ran = compare(drive, folder, export(SOURCE, INPUTS, DIMS))
    assert ran.code == 1 and "It was frozen by torch 2.12.1, and is exported by" in ran.err


def test_control_flow_is_readable(export: Export) -> None:
    program = export(
        """
        import torch

        class Net(torch.nn.Module):
            def forward(self, x):
                return torch.cond(x.sum() > 0, lambda x: x.sin(), lambda x: x.cos(), (x,))

        def build():
            return Net()
        """,
        INPUTS,
        DIMS,
    )
    assert program.code == 0, program.error
    lines = graph_text.readable(json.loads(program.graph.read_text()))
    assert any("higher_order.cond" in line for line in lines), lines
    assert any(line.startswith("    ") and "aten.sin.default" in line for line in lines), lines


def test_dtypes_inside_of_a_graph_are_readable(export: Export) -> None:
    program = export(
        """
        import torch

        class Net(torch.nn.Module):
            def forward(self, x):
                return x.view(torch.uint16).to(torch.float8_e5m2).float()

        def build():
            return Net()
        """,
        {"x": "int16[4]"},
    )
    text = "\n".join(graph_text.readable(json.loads(program.graph.read_text())))
    assert "int16[4]" in text and ": uint16[4]" in text and ": float8_e5m2[4]" in text
