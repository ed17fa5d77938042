"""The generated text: same program, same text; no weights and no host in it; and its errors."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from aoti_driver.base.errors import DriverError
from aoti_driver.contract import isa
from aoti_driver.inductor import config_options, generator
from aoti_driver.program import loading, weights_file
from torch import Tensor, nn

from tests.unit.driver.inductor import harness, models

_FILES = ("wrapper.cpp", "kernels/kernels_0.cpp", "compiled.json")
_SCRIPT = """
import sys
from pathlib import Path
sys.path[:0] = {path!r}
from tests.unit.driver.inductor import harness, models
module, args, kwargs, shapes = models.odd()
harness.freeze(Path(sys.argv[1]), module, args, kwargs, shapes)
harness.generate(Path(sys.argv[1]), "odd")
"""


def _digests(folder: Path) -> dict[str, str]:
    files = ("graph.json", "weights.safetensors", *_FILES)
    return {f: hashlib.sha256((folder / f).read_bytes()).hexdigest() for f in files}


def test_bytes_do_not_depend_on_the_host(tmp_path: Path) -> None:
    running = []
    for name, seed in (("one", "1"), ("another/place", "2")):
        folder = tmp_path / name
        folder.mkdir(parents=True)
        environment = {
            "PYTHONHASHSEED": seed,
            "HOME": str(folder),
            "TMPDIR": str(folder),
            "PATH": "/nonexistent",  # there is no compiler to be found
            "OMP_NUM_THREADS": seed,
        }
        script = _SCRIPT.format(path=[p or os.getcwd() for p in sys.path])
        command = [sys.executable, "-I", "-c", script, str(folder / "out")]
        running.append((folder, subprocess.Popen(command, cwd=folder, env=environment)))
    for _, process in running:
        assert process.wait() == 0
    one, two = (_digests(folder / "out") for folder, _ in running)
    assert one == two
    for file in _FILES:
        text = (tmp_path / "one" / "out" / file).read_text(encoding="utf-8")
        assert str(tmp_path) not in text and "site-packages" not in text


def test_a_graph_that_was_damaged_in_a_cache_is_refused(tmp_path: Path) -> None:
    module, args, kwargs, shapes = models.odd()
    harness.freeze(tmp_path, module, args, kwargs, shapes)
    graph = tmp_path / "graph.json"
    content = graph.read_bytes()
    assert b"aten.add.Tensor" in content
    graph.write_bytes(content.replace(b"aten.add.Tensor", b"aten.sub.Tensor", 1))
    with pytest.raises(DriverError, match="not the graph that the manifest was written for"):
        harness.generate(tmp_path, "odd")
    assert not (tmp_path / "wrapper.cpp").exists()


class Scaled(nn.Module):
    """Has parameters and buffers of one element, which Inductor would fold into the code."""

    shift: Tensor

    def __init__(self, value: float) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.full((), value))
        self.register_buffer("shift", torch.full((1,), value))
        self.layer = nn.Linear(8, 8, bias=False)
        nn.init.constant_(self.layer.weight, value)

    def forward(self, x: Tensor) -> Tensor:
        hidden: Tensor = self.layer(x)
        return hidden * self.scale + self.shift * 2


def test_values_of_weights_are_not_in_the_code(tmp_path: Path) -> None:
    texts = set()
    for value in (0.0, 1.0, 0.37):
        folder = tmp_path / str(value)
        harness.freeze(folder, Scaled(value), (torch.randn(2, 8),))
        weights = weights_file.read_weights(folder / "weights.safetensors")
        ep = loading.load_program(folder / "graph.json", None, weights, flat=True)
        with torch.no_grad():
            generated = generator.generate(
                ep, isa.find(harness.ISA), suffix="_s", call_spec=("", ""), options={}
            )
        texts.add(generated.wrapper + generated.kernels)
    assert len(texts) == 1
    manifest = harness.generate(folder, "s")
    sources = {c.source for c in manifest.codegen.constants}
    assert sources == {"scale", "shift", "layer.weight"}


@pytest.mark.parametrize(
    ("name", "width"), [("x86-64", None), ("x86-64-v3", 8), ("x86-64-v4", 16), ("aarch64", 4)]
)
def test_instruction_sets(tmp_path: Path, name: str, width: int | None) -> None:
    class Exp(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x.exp()

    harness.freeze(tmp_path, Exp(), (torch.randn(64),))
    manifest = harness.generate(tmp_path, "e", name)
    assert manifest.codegen.isa == name
    kernels = harness.kernels(tmp_path)
    if width is None:
        assert "Vectorized" not in kernels
    else:
        assert f"x0 += static_cast<int64_t>({width}L)" in kernels


class Calling(nn.Module):
    """Calls functions of the C interface, one operator by name, and some in a branch."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(6, 6)

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        first, second = torch.topk(self.layer(x), 2)[0], torch.topk(x, 3)[1]
        inverse = torch.linalg.inv(x.t() @ x)
        branch = torch.cond(x.sum() > 0, lambda y: y.sort(-1)[0], lambda y: y + 1, (x,))
        return first, second, inverse, branch


def test_shims_name_the_nodes_that_need_them(tmp_path: Path) -> None:
    harness.freeze(tmp_path, Calling().eval(), (torch.randn(9, 6),))
    manifest = harness.generate(tmp_path, "mlp")
    assert manifest.codegen.program_id == "mlp" and manifest.codegen.device == "cpu"
    assert [shim.name for shim in manifest.codegen.shims] == sorted(
        shim.name for shim in manifest.codegen.shims
    )
    found = {shim.name: (shim.operators, shim.nodes) for shim in manifest.codegen.shims}
    assert found["aoti_torch_cpu_topk"] == (("aten.topk.default",), ("topk", "topk_1"))
    assert found["aoti_torch_cpu_addmm_out"] == (("aten.linear.default",), ("linear",))
    assert found["aten::linalg_inv_ex"] == (("aten.linalg_inv.default",), ("linalg_inv",))
    assert found["aoti_torch_cpu_sort_stable"] == (("aten.sort.default",), ("sort",))
    dtypes = {shim.name: shim.dtypes for shim in manifest.codegen.shims}
    assert dtypes["aoti_torch_cpu_topk"] == ("float32->float32,int64",)
    assert dtypes["aoti_torch_cpu_addmm_out"] == ("float32->float32",)
    assert dtypes["aten::linalg_inv_ex"] == ("float32->float32,int32",)
    assert dtypes["aoti_torch_empty_strided"] == ()
    assert found["aoti_torch_call_dispatcher"] == ((), ())
    assert found["aoti_torch_empty_strided"] == ((), ())
    assert found["torch_exception_get_what_without_backtrace"] == ((), ())


def test_a_number_in_the_place_of_a_tensor_has_a_dtype_too(tmp_path: Path) -> None:
    class Shifted(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return torch.where(x > 0, x + 1j, 2)

    harness.freeze(tmp_path, Shifted(), (torch.randn(9, 6),))
    manifest = harness.generate(tmp_path, "m")
    dtypes = {shim.name: shim.dtypes for shim in manifest.codegen.shims}
    assert dtypes["aoti_torch_cpu_add_Tensor"] == ("complex64,float32->complex64",)
    assert dtypes["aten::where.self"] == ("bool,complex64->complex64",)


def test_unknown_isa(tmp_path: Path) -> None:
    harness.freeze(tmp_path, models.Mlp(), (torch.randn(5, 6),))
    with pytest.raises(DriverError, match=r'unknown isa "x86-64-v2" \(did you mean "x86-64-v'):
        harness.generate(tmp_path, "mlp", "x86-64-v2")


def test_options(tmp_path: Path) -> None:
    harness.freeze(tmp_path, models.Mlp(), (torch.randn(5, 6),))
    with pytest.raises(DriverError, match='options: "freezing" is set by the rules'):
        harness.generate(tmp_path, "mlp", freezing="True")
    with pytest.raises(DriverError, match='Inductor has no option "epilogue_fusio"'):
        harness.generate(tmp_path, "mlp", epilogue_fusio="False")
    with pytest.raises(DriverError, match='options: "max_autotune" makes Inductor compile'):
        harness.generate(tmp_path, "mlp", max_autotune="True")
    harness.generate(tmp_path, "mlp", max_autotune="False")
    name = "cpp.enable_kernel_profile"
    profiled: dict[str, Any] = {name: "True"}
    with pytest.raises(DriverError, match=f'options: "{name}" writes calls of PyTorch'):
        harness.generate(tmp_path, "mlp", **profiled)
    profiled = {name: "False"}
    harness.generate(tmp_path, "mlp", **profiled)
    harness.freeze(tmp_path, nn.Embedding(9, 4), (torch.arange(3),))
    harness.generate(tmp_path, "e")
    assert "IndexError" in harness.kernels(tmp_path)
    manifest = harness.generate(tmp_path, "e", assert_indirect_indexing="False")
    assert manifest.codegen.options == {"assert_indirect_indexing": "false"}
    assert "IndexError" not in harness.kernels(tmp_path)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("true", True),
        ("True", True),
        ("null", None),
        ("None", None),
        ("16", 16),
        ("1e-3", 0.001),
        ("CPP,ATEN", "CPP,ATEN"),
        ('"16"', "16"),
        ("'16'", "16"),
        ('["a", 1]', ["a", 1]),
        ("('a', 1)", ["a", 1]),
        ("{1}", "{1}"),
        ("", ""),
    ],
)
def test_options_are_parsed_once(text: str, value: object) -> None:
    (parsed,) = config_options.parse_options({"cpp.threads": text}, "//m:e").values()
    assert parsed == value and type(parsed) is type(value)


def test_rounding_in_between(tmp_path: Path) -> None:
    class Rounds(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x.to(torch.bfloat16).float() * 3

    harness.freeze(tmp_path, Rounds(), (torch.randn(64),))
    harness.generate(tmp_path, "r")
    assert "convert<float,2,at::BFloat16" not in harness.kernels(tmp_path)
    harness.generate(tmp_path, "r", emulate_precision_casts="True")
    assert "convert<float,2,at::BFloat16" in harness.kernels(tmp_path)


def test_operator_that_inductor_refuses(tmp_path: Path) -> None:
    class Quantized(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return torch.relu(torch.fake_quantize_per_tensor_affine(x, 0.1, 0, 0, 255))

    harness.freeze(tmp_path, Quantized(), (torch.randn(2, 8),))
    with pytest.raises(DriverError, match=r"//pkg:model: .*fake_quantize_per_tensor_affine") as e:
        harness.generate(tmp_path, "m")
    assert "site-packages" not in str(e.value)


def test_constants_in_the_result(tmp_path: Path) -> None:
    class Described(nn.Module):
        def forward(self, x: Tensor) -> tuple[Tensor, float, int, None, Tensor]:
            return x + 1, 2.5, 3, None, x - 1

    harness.freeze(tmp_path, Described(), (torch.ones(2),))
    harness.generate(tmp_path, "described")
    wrapper = (tmp_path / "wrapper.cpp").read_text(encoding="utf-8")
    assert "output_handles[0]" in wrapper and "output_handles[4]" in wrapper
    assert "output_handles[1]" not in wrapper
