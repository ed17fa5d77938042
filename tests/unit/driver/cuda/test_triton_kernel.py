"""One Triton kernel with its C++ launcher, compiled on a machine without a GPU. Needs Triton."""

from __future__ import annotations

import json
import re
import sys
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from aoti_driver.base.errors import DriverError
from aoti_driver.cuda import archs
from aoti_driver.process import cli
from aoti_driver.triton_kernel import compiling

SOURCE = """
import triton
import triton.language as tl

@triton.jit
def scale(x, y, n, factor, block: tl.constexpr, twice: tl.constexpr = False):
    places = tl.program_id(0) * block + tl.arange(0, block)
    used = places < n
    value = tl.load(x + places, used) * factor
    tl.store(y + places, value * 2 if twice else value, used)

@triton.jit
def writes_input(x, y, block: tl.constexpr):
    tl.store(x + tl.arange(0, block), 1.0)

@triton.jit
def plus_one(x):
    return x + 1

tuned = triton.autotune([triton.Config({"block": 16})], key=["n"])(scale)

def plain(x):
    return x
"""

SPEC = {
    "label": "//pkg:scale",
    "program_id": "m_pkg_scale",
    "src": "_main/pkg/kernels.py",
    "fn": "scale",
    "signature": {"n": "int64", "factor": "float32", "y": "float32*", "x": "const float32*"},
    "constants": {"block": "128"},
    "divisible_by_16": [],
    "grid": [],
    "num_warps": 4,
    "num_stages": 3,
    "cuda_archs": ["sm_80", "sm_90"],
    "header": "pkg/scale.h",
    "namespace": "pkg",
    "class_name": "Scale",
    "py_module": "scale",
}

Compile = Callable[..., str]


@pytest.fixture
def compiled(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Compile]:
    """Runs the subcommand in ``tmp_path``; returns its error, which is empty for success."""
    path = list(sys.path)

    def run(kernels: str = SOURCE, **changed: Any) -> str:
        monkeypatch.chdir(tmp_path)
        (tmp_path / "kernels.py").write_text(kernels, encoding="utf-8")
        (tmp_path / "spec.json").write_text(json.dumps({**SPEC, **changed}), encoding="utf-8")
        outs = {
            "header": "scale.h",
            "source": "scale.cc",
            "images": "images",
            "kernels": "kernels",
            "pymodule": "scale.python.cc",
            "pyi": "scale.pyi",
        }
        flags = [f"--out_{flag}={name}" for flag, name in outs.items()]
        for name in [name for name in sys.modules if name.split(".")[0] == "pkg"]:
            del sys.modules[name]
        capsys.readouterr()
        source = "--source=_main/pkg/kernels.py=kernels.py"
        code = cli.main(
            ["triton_kernel", "--spec=spec.json", source, "--import_root=_main", *flags]
        )
        error = capsys.readouterr().err
        assert (code == 0) == (error == "")
        assert code in (0, 1), error
        return error

    yield run
    sys.path[:] = path


def test_a_cubin_for_each_arch_and_ptx_of_the_lowest(compiled: Compile, tmp_path: Path) -> None:
    assert compiled(cuda_archs=["sm_90", "sm_80"]) == ""
    kernels = tmp_path / "kernels"
    assert sorted(file.name for file in kernels.iterdir()) == [
        "sm_80.cubin",
        "sm_80.ptx",
        "sm_90.cubin",
    ]
    assert (kernels / "sm_90.cubin").read_bytes().startswith(b"\x7fELF")
    ptx = (kernels / "sm_80.ptx").read_text(encoding="utf-8")
    assert ".target sm_80" in ptx
    assert ".loc" not in ptx  # no paths of the machine
    source = (tmp_path / "scale.cc").read_text(encoding="utf-8")
    assert '{"scale", kImages0, 3},' in source


def test_the_launcher_has_the_order_of_the_function(compiled: Compile, tmp_path: Path) -> None:
    assert compiled(cuda_archs=["sm_90"]) == ""
    header = (tmp_path / "scale.h").read_text(encoding="utf-8")
    assert "scale, with block = 128, twice = False, loaded" in header
    assert (
        "Launch(::aoti::CudaStream stream, ::aoti::CudaGrid grid, const float* x, float* y, "
        "std::int64_t n, float factor) const;"
    ) in header
    assert [file.name for file in (tmp_path / "kernels").iterdir()] == ["sm_90.cubin"]


def test_the_python_module(compiled: Compile, tmp_path: Path) -> None:
    """A parameter's name may be that of an argument of ours, or of the method's object."""
    source = "def scale(self, stream, n, m, on, block: tl.constexpr):"
    signature = {
        "self": "const uint16*",
        "stream": "bfloat16*",
        "n": "int64",
        "m": "uint32",
        "on": "bool",
    }
    kernel = SOURCE[: SOURCE.index("def scale")] + f"{source}\n    pass\n"
    assert compiled(cuda_archs=["sm_80"], signature=signature, kernels=kernel) == ""
    stub = (tmp_path / "scale.pyi").read_text(encoding="utf-8")
    assert (
        "def __call__(_self, grid: Grid, self: int, stream: SupportsDLPack | int, "
        "n: SupportsIndex, m: SupportsIndex, on: bool, *, stream_: SupportsIndex = 0) -> None:"
    ) in stub
    module = (tmp_path / "scale.python.cc").read_text(encoding="utf-8")
    kind = "aoti::python::KernelKind::"
    for row in (
        f'{{.name = "self", .type = "const uint16*", .kind = {kind}kPointer, .read_only = true}}',
        f'{{.name = "stream", .type = "bfloat16*", .kind = {kind}kPointer, '
        ".dtype = aoti::DType::kBFloat16}",
        f'{{.name = "m", .type = "uint32", .kind = {kind}kUnsigned, .bits = 32}}',
        "Launch(stream, grid, static_cast<const std::uint16_t*>(values[0].pointer), ",
        "static_cast<std::uint32_t>(values[3].bits), static_cast<bool>(values[4].truth));",
        '.stream = "stream_"',
        '.grid = "grid"',
    ):
        assert row in module


def test_without_a_python_module(compiled: Compile, tmp_path: Path) -> None:
    assert compiled(cuda_archs=["sm_80"], py_module="") == ""
    assert not (tmp_path / "scale.python.cc").exists()


def test_a_grid_of_expressions(compiled: Compile, tmp_path: Path) -> None:
    grid = ["cdiv(n, block)", "min(2, n) * 1", "n // 7 % 3 + 1 - 1"]
    assert compiled(cuda_archs=["sm_80"], grid=grid) == ""
    source = (tmp_path / "scale.cc").read_text(encoding="utf-8")
    assert "CudaGrid grid" not in source
    assert (
        "GridOf(kLabel, {CeilDiv(GridSize(n), GridSize(128)), "
        "(Min(GridSize(2), GridSize(n)) * GridSize(1)), "
        "((((GridSize(n) / GridSize(7)) % GridSize(3)) + GridSize(1)) - GridSize(1))});"
    ) in source


def test_what_is_divisible_is_loaded_at_once(compiled: Compile, tmp_path: Path) -> None:
    assert compiled(cuda_archs=["sm_80"], constants={"block": "512"}) == ""
    ptx = (tmp_path / "kernels" / "sm_80.ptx").read_text(encoding="utf-8")
    assert "ld.global.v4" not in ptx
    both = ["x", "y", "n"]
    assert compiled(cuda_archs=["sm_80"], constants={"block": "512"}, divisible_by_16=both) == ""
    ptx = (tmp_path / "kernels" / "sm_80.ptx").read_text(encoding="utf-8")
    assert "ld.global.v4" in ptx
    source = (tmp_path / "scale.cc").read_text(encoding="utf-8")
    assert '{"x", reinterpret_cast<std::uintptr_t>(x) % 16 == 0}' in source
    assert '{"n", n % 16 == 0}});' in source


SCALE = "scale(x, y, n, factor, block, twice)"
POINTERS = {"x": "const float32*", "y": "float32*"}


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (
            {"fn": "scael"},
            '//pkg:scale: fn "scael" of pkg/kernels.py: module pkg.kernels has no "scael" (did you '
            'mean "scale"?). It has: ',
        ),
        (
            {"fn": "plain"},
            '//pkg:scale: fn "plain" of pkg/kernels.py is no Triton kernel: expected a function '
            "with @triton.jit",
        ),
        (
            {"fn": "tuned"},
            '//pkg:scale: fn "tuned" of pkg/kernels.py is to be tuned on a GPU (@triton.autotune',
        ),
        (
            {"signature": {**SPEC["signature"], "m": "int64"}},  # type: ignore[dict-item]
            f'//pkg:scale: signature["m"]: {SCALE} has no such parameter',
        ),
        (
            {"signature": POINTERS},
            f"//pkg:scale: signature leaves out n, factor of {SCALE}; give the type of each",
        ),
        (
            {"constants": {"block": "128", "n": "16"}},
            f'//pkg:scale: constants["n"]: the parameter is not a constant of {SCALE}; declare it '
            "n: tl.constexpr there",
        ),
        (
            {"constants": {"block": "128", "blok": "16"}},
            f'//pkg:scale: constants["blok"]: {SCALE} has no such parameter (did you mean '
            '"block"?)',
        ),
        (
            {"constants": {}},
            f"//pkg:scale: constants leaves out block of {SCALE}, which is tl.constexpr",
        ),
        (
            {"constants": {"block": "many"}},
            '//pkg:scale: constants["block"] = "many" is not a value; expected a number',
        ),
        (
            {"signature": {**SPEC["signature"], "block": "int32"}},  # type: ignore[dict-item]
            f'//pkg:scale: signature["block"]: the parameter is tl.constexpr in {SCALE}',
        ),
        (
            {"cuda_archs": ["sm_61"]},
            '//pkg:scale: cuda_archs: unknown architecture "sm_61"',
        ),
        (
            {"grid": ["factor + 1"]},
            '//pkg:scale: grid: "factor + 1" has the name factor; expected integers of the '
            "signature and of constants: block, n",
        ),
        (
            {"grid": ["n / 2"]},
            '//pkg:scale: grid: "n / 2" is not an expression of integers with +, -, *, //, %',
        ),
        ({"class_name": "class"}, '//pkg:scale: cc_class "class" is reserved in C++'),
        (
            {"fn": "writes_input", "signature": POINTERS},
            '//pkg:scale: fn "writes_input" of pkg/kernels.py: Triton can\'t compile it for '
            "sm_80: ",
        ),
        (
            {"fn": "plus_one", "signature": {"x": "int32"}, "constants": {}},
            '//pkg:scale: fn "plus_one" of pkg/kernels.py: ',
        ),
    ],
)
def test_mistakes(compiled: Compile, changed: dict[str, Any], message: str, tmp_path: Path) -> None:
    error = compiled(**changed)
    assert error.startswith(message)
    assert str(tmp_path) not in error
    assert not re.search(r"/tmp/|runfiles", error)
    assert not (tmp_path / "scale.h").exists()


@pytest.mark.parametrize(
    ("shared", "scratch", "message"),
    [
        (
            70000,
            0,
            "//pkg:scale: a block needs 70000 bytes of shared memory, and sm_75 has 65536; use "
            "smaller tiles",
        ),
        (0, 128, "//pkg:scale: Triton gives it memory of its own on the device for sm_75"),
    ],
)
def test_what_a_gpu_lacks(shared: int, scratch: int, message: str) -> None:
    metadata = types.SimpleNamespace(
        shared=shared, global_scratch_size=scratch, profile_scratch_size=0
    )
    with pytest.raises(DriverError, match=re.escape(message)):
        compiling.check(metadata, archs.ARCHS["sm_75"], "//pkg:scale")
