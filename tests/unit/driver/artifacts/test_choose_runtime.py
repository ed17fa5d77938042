"""The runtime that a program is linked with, and the message about a missing operator."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from aoti_driver.artifacts.choose_runtime import needs_of_all
from aoti_driver.contract.code_parts import Codegen, CudaCode, Packed, Shim
from aoti_driver.contract.manifest import CodeManifest, LibraryManifest, ProgramManifest
from aoti_driver.contract.manifest_file import read_manifest, to_json
from aoti_driver.process import cli

LIBTORCH = "_main/models/decoder.libtorch/libprogram.so"
SVD = Shim("aten::linalg_svdvals", ("aten.linalg_svdvals.default",), ("svd",))
ADDMM = Shim("aoti_torch_cpu_addmm_out", ("aten.linear.default",), ("linear",))
EMPTY = Shim("aoti_torch_empty_strided")
FUNCTIONS = [
    "aoti_slim_op_aten_bincount",
    "aoti_slim_op_torchvision_nms",
    "aoti_torch_cpu_addmm_out",
    "aoti_torch_cpu_randint_low_out",
    "aoti_torch_empty_strided",
]
DTYPES = [
    "op_torchvision_nms aoti_slim_op_other_nms: float32->int64",
    "aoti_torch_cpu_addmm_out: float32->float32|int64 int8,uint8->int32",
]
BINCOUNT = Shim("aten::bincount", ("aten.bincount.default",), ("bincount",))


@dataclasses.dataclass
class Result:
    status: int
    errors: str
    source: str
    manifest: LibraryManifest | None


def choose(
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    mode: str,
    shims: Sequence[Shim],
    locations: dict[str, object] | None = None,
    libtorch: bool = True,
    higher: Sequence[Codegen] = (),
    custom_ops: Sequence[str] = (),
    operator_libraries: Sequence[str] = (),
    cuda: CudaCode | None = None,
) -> Result:
    device = "cuda" if cuda else "cpu"
    codegen = Codegen("models_decoder", device, "x86-64", {}, tuple(shims), (), cuda=cuda)
    program = ProgramManifest(
        label="//models:decoder",
        name="decoder",
        torch_version="2.13.0",
        strict=False,
        dims=(),
        inputs=(),
        outputs=(),
        constants=(),
        graph_sha256="",
    )
    files = {
        "spec": json.dumps(
            {
                "label": "//models:decoder",
                "libtorch": libtorch,
                "library": LIBTORCH,
                "mode": mode,
                "custom_ops": list(custom_ops),
                "operator_libraries": list(operator_libraries),
            }
        ),
        "manifest": to_json(CodeManifest(program, codegen)),
        "functions": "\n".join(FUNCTIONS),
        "dtypes": "\n".join(DTYPES),
        "locations": json.dumps(locations or {}),
    }
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    variants = {code.isa: to_json(CodeManifest(program, code)) for code in higher}
    for name, text in variants.items():
        (folder / name).write_text(text, encoding="utf-8")
    status = cli.main(
        [
            "shim",
            *(f"--{name}={folder / name}" for name in files),
            *(f"--variant={folder / name}" for name in variants),
            f"--out_manifest={folder / 'completed.json'}",
            f"--out_source={folder / 'shim.cc'}",
        ]
    )
    errors = capsys.readouterr().err
    if status != 0:
        assert not (folder / "completed.json").exists()
        assert not (folder / "shim.cc").exists()
        return Result(status, errors, "", None)
    completed = read_manifest(folder / "completed.json", LibraryManifest)
    return Result(status, errors, (folder / "shim.cc").read_text(encoding="utf-8"), completed)


def codegen_for(isa: str, shims: Sequence[Shim], packed: Sequence[Packed]) -> Codegen:
    name = isa.replace("-", "_")
    return Codegen(name, "cpu", isa, {}, tuple(shims), (), packed=tuple(packed))


def test_variants_need_what_any_of_them_needs() -> None:
    matrix = Packed("w", "gemm", {}, only=True)
    low = codegen_for("x86-64", [Shim("b"), Shim("a")], [matrix, Packed("v", "gemm", {}, True)])
    high = codegen_for("x86-64-v4", [Shim("c")], [matrix])
    merged = needs_of_all(low, [high])
    assert (merged.isa, merged.program_id) == ("x86-64", "x86_64")
    assert [shim.name for shim in merged.shims] == ["a", "b", "c"]
    # The program for x86-64-v4 reads v as it is stored.
    assert {item.source: item.only for item in merged.packed} == {"w": True, "v": False}
    # CUDA packs nothing.
    merged = needs_of_all(low, [on_cuda([])])
    assert {item.source: item.only for item in merged.packed} == {"w": False, "v": False}


def test_variants_need_the_dtypes_of_each_of_them() -> None:
    low = codegen_for("x86-64", [Shim("a", dtypes=("float32->float32",))], [])
    high = codegen_for("x86-64-v4", [Shim("a", dtypes=("int8->int32",))], [])
    (merged,) = needs_of_all(low, [high]).shims
    assert merged.dtypes == ("float32->float32", "int8->int32")


def test_the_library_lists_its_variants(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    higher = [codegen_for(isa, [EMPTY], []) for isa in ("x86-64-v4", "x86-64-v3")]
    result = choose(tmp_path, capsys, "auto", [ADDMM], higher=higher)
    assert result.manifest is not None
    assert [(variant.isa, variant.program_id) for variant in result.manifest.variants] == [
        ("x86-64-v4", "x86_64_v4"),
        ("x86-64-v3", "x86_64_v3"),
    ]
    assert result.manifest.isas == "x86-64, x86-64-v3, x86-64-v4"
    assert result.manifest.codegen.program_id == "models_decoder"
    assert [shim.name for shim in result.manifest.codegen.shims] == [ADDMM.name, EMPTY.name]


def chosen(result: Result) -> str:
    assert result.manifest is not None
    return result.manifest.shim


@pytest.mark.parametrize("mode", ["auto", "slim"])
def test_covered(tmp_path: Path, capsys: pytest.CaptureFixture[str], mode: str) -> None:
    result = choose(tmp_path, capsys, mode, [ADDMM, EMPTY, BINCOUNT])
    assert (result.status, result.errors, chosen(result)) == (0, "", "slim")
    assert "return &models_decoder;" in result.source
    # The linker would leave an operator that is called by name in the library.
    assert "extern const char aoti_slim_op_aten_bincount[];" in result.source


@pytest.mark.parametrize("mode", ["auto", "slim"])
def test_own_operators(tmp_path: Path, capsys: pytest.CaptureFixture[str], mode: str) -> None:
    """Slim has none of them: the program's own library has, which is looked into at load."""
    own = [Shim("my::scale", ("my.scale.default",)), Shim("my::scale.out")]
    result = choose(tmp_path, capsys, mode, [*own, BINCOUNT], custom_ops=["//ops:scale"])
    assert (result.status, result.errors, chosen(result)) == (0, "", "slim")
    assert '    "my::scale",\n    "my::scale.out",\n};' in result.source
    assert "aoti_slim_operator_problem(name)" in result.source
    assert "aoti_slim_op_my" not in result.source
    assert "extern const char aoti_slim_op_aten_bincount[];" in result.source


@pytest.mark.parametrize("mode", ["auto", "libtorch"])
def test_own_operators_on_libtorch(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], mode: str
) -> None:
    shims = [Shim("my::scale"), SVD]
    libraries = ["libops_scale.so", "libops_more.so"]
    result = choose(
        tmp_path, capsys, mode, shims, custom_ops=["//ops:a"], operator_libraries=libraries
    )
    assert chosen(result) == "libtorch"
    assert "::aoti::internal::WithOperators(spec, " in result.source
    assert ', {"libops_scale.so", "libops_more.so"});' in result.source


def test_own_operators_without_a_target(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    result = choose(tmp_path, capsys, "auto", [Shim("my::scale"), ADDMM])
    assert result.errors == (
        "//models:decoder: the program calls operators that aren't PyTorch's own: my::scale. Give "
        "the torch_custom_ops targets that have them to custom_ops\n"
    )


def test_auto_falls_back_and_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    result = choose(tmp_path, capsys, "auto", [ADDMM, SVD])
    assert chosen(result) == "libtorch"
    assert result.errors == (
        "//models:decoder: linked with libtorch, because the slim runtime has no "
        "aten.linalg_svdvals.default\n"
    )
    assert f'LoadProgram(spec, "{LIBTORCH}", "aoti_program_models_decoder")' in result.source


def addmm_of(*dtypes: str) -> Shim:
    return dataclasses.replace(ADDMM, dtypes=dtypes)


@pytest.mark.parametrize(
    "dtypes",
    [
        (),
        ("float32->float32",),
        ("float32->",),  # written into an argument
        ("float32->float32", "int8,uint8->int32"),
    ],
)
def test_covered_dtypes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], dtypes: tuple[str, ...]
) -> None:
    # Functions that are not in the table take all dtypes.
    copy = dataclasses.replace(EMPTY, dtypes=("uint64->uint64",))
    result = choose(tmp_path, capsys, "auto", [addmm_of(*dtypes), copy])
    assert (result.errors, chosen(result)) == ("", "slim")


@pytest.mark.parametrize("dtypes", ["uint8->int32", "int8,uint8->int64", "float32,int8->float32"])
def test_auto_falls_back_for_other_dtypes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], dtypes: str
) -> None:
    result = choose(tmp_path, capsys, "auto", [addmm_of("float32->float32", dtypes)])
    assert chosen(result) == "libtorch"
    of = " and ".join(dtypes.split("->")[0].split(","))
    assert result.errors == (
        "//models:decoder: linked with libtorch, because the slim runtime has no "
        f"aten.linear.default of {of}\n"
    )


def test_missing_dtypes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = {"file": "models/decoder.py", "line": 7, "code": "y = self.w(x)", "module": ""}
    shim = addmm_of("float32->float32", "int16,uint8->int32", "->complex64")
    result = choose(tmp_path, capsys, "slim", [shim], {"linear": place})
    assert result.status == 1
    assert (
        "lacks what this model needs:\n"
        "  aten.linear.default of complex64, or of int16 and uint8 (aoti_torch_cpu_addmm_out)\n"
        "    used at models/decoder.py:7: y = self.w(x)\n"
    ) in result.errors


def test_libtorch(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    result = choose(tmp_path, capsys, "libtorch", [ADDMM, SVD])
    assert (result.errors, chosen(result)) == ("", "libtorch")
    assert "return aoti_program_models_decoder();" in result.source


def test_missing_operator(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = {
        "file": "models/decoder.py",
        "line": 41,
        "code": "scale = torch.linalg.svdvals(x)",
        "module": "layers.0",
    }
    result = choose(tmp_path, capsys, "slim", [ADDMM, SVD], {"svd": place})
    assert result.status == 1
    assert result.errors == (
        '//models:decoder: shim = "slim", but the slim runtime lacks what this model needs:\n'
        "  aten.linalg_svdvals.default (aten::linalg_svdvals)\n"
        "    used at models/decoder.py:41: scale = torch.linalg.svdvals(x), in layers.0\n"
        'Either link libtorch (shim = "libtorch", or "auto"), or have the operator replaced by '
        'simpler ones if PyTorch can (decompositions = ["aten.linalg_svdvals.default"])\n'
    )


def test_missing_operator_where_there_is_no_libtorch(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    result = choose(tmp_path, capsys, "slim", [ADDMM, SVD], libtorch=False)
    assert result.status == 1
    assert result.errors == (
        "//models:decoder: the slim runtime lacks what this model needs, and the torch runtime "
        "toolchain has no libtorch for the target platform:\n"
        "  aten.linalg_svdvals.default (aten::linalg_svdvals)\n"
        "    used at node svd of the graph\n"
        "Either have the operator replaced by simpler ones if PyTorch can "
        '(decompositions = ["aten.linalg_svdvals.default"]), or register a torch_runtime_toolchain '
        "with libtorch for it\n"
    )


def test_missing_operator_of_an_imported_program(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    result = choose(tmp_path, capsys, "slim", [SVD])
    assert "    used at node svd of the graph\n" in result.errors


@pytest.mark.parametrize("mode", ["libtorch", "auto"])
def test_four_bit_weights_need_slim(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], mode: str
) -> None:
    int4 = Shim("aten::_weight_int4pack_mm_for_cpu", (), ("int4",))
    result = choose(tmp_path, capsys, mode, [int4, SVD])
    assert result.status == 1
    assert "4-bit weights can't run on libtorch" in result.errors
    assert 'Use shim = "slim"' in result.errors


NMS = Shim("torchvision::nms", ("torchvision.nms.default",), ("nms",), ("float32->int64",))


def test_torchvisions_operators_are_slims(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    result = choose(tmp_path, capsys, "auto", [NMS])
    assert (result.status, result.errors, chosen(result)) == (0, "", "slim")
    assert "extern const char aoti_slim_op_torchvision_nms[];" in result.source
    assert "aoti_slim_operator_problem" not in result.source


@pytest.mark.parametrize(
    ("mode", "shims", "message"),
    [
        (
            "libtorch",
            [NMS],
            'because shim = "libtorch" asks for it. Use shim = "auto" or "slim"',
        ),
        (
            "auto",
            [NMS, SVD],
            "because the slim runtime has no aten.linalg_svdvals.default. Write the model "
            "without aten.linalg_svdvals.default",
        ),
    ],
)
def test_torchvisions_operators_are_not_libtorchs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], mode: str, shims: list[Shim], message: str
) -> None:
    result = choose(tmp_path, capsys, mode, shims)
    assert result.status == 1
    assert result.errors == (
        "//models:decoder: the program calls torchvision::nms, which libtorch does not have, and "
        f"would run on libtorch, {message}, or return what goes into torchvision::nms, and do the "
        "rest in the program that calls the model\n"
    )


GPUS = CudaCode(("sm_80",), 3)
TOPK = Shim("aoti_torch_cuda_topk", ("aten.topk.default",), ("topk",), ("float32->float32,int64",))


@pytest.mark.parametrize("mode", ["auto", "slim"])
def test_operators_without_a_kernel_for_gpus(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], mode: str
) -> None:
    line = {"file": "models/decoder.py", "line": 7, "code": "x.topk(3)", "module": "head"}
    shims = [ADDMM, BINCOUNT, EMPTY, TOPK]
    result = choose(tmp_path, capsys, mode, shims, {"topk": line}, cuda=GPUS)
    assert result.status == 1
    assert result.errors == (
        '//models:decoder: device = "cuda": these operators have no kernel for GPUs:\n'
        "  aten.linear.default (aoti_torch_cpu_addmm_out)\n"
        "    used at node linear of the graph\n"
        "  aten.topk.default (aoti_torch_cuda_topk)\n"
        "    used at models/decoder.py:7: x.topk(3), in head\n"
        "  aten.bincount.default (aten::bincount)\n"
        "    used at node bincount of the graph\n"
        "Rows are sorted in kernels if the most elements of a row are known; if the row's length "
        "is a dim, give it an upper bound in dynamic_dims. Have them replaced by simpler ones if "
        "PyTorch can "
        '(decompositions = ["aten.linear.default"]), write them as an operator of your own '
        '(torch_triton_ops), or build the model for device = "cpu"\n'
    )


def test_seeds_of_random_numbers_are_drawn_on_the_cpu(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    seeds = Shim("aoti_torch_cpu_randint_low_out", ("aten.rand_like.default",), (), ("->int64",))
    assert chosen(choose(tmp_path, capsys, "auto", [EMPTY, seeds], cuda=GPUS)) == "slim"


def test_gpus_need_slim(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    result = choose(tmp_path, capsys, "libtorch", [EMPTY], cuda=GPUS)
    assert result.errors == (
        '//models:decoder: shim = "libtorch": programs for GPUs (device = "cuda") run on '
        'the slim runtime alone; use shim = "auto" or "slim", or device = "cpu"\n'
    )
    result = choose(tmp_path, capsys, "auto", [EMPTY], cuda=GPUS)
    assert chosen(result) == "slim"
    assert result.manifest is not None
    assert result.manifest.codegen.cuda == GPUS


def on_cuda(shims: Sequence[Shim]) -> Codegen:
    return Codegen("models_decoder_cuda", "cuda", "x86-64", {}, tuple(shims), (), cuda=GPUS)


def test_the_cpu_and_cuda(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    higher = codegen_for("x86-64-v4", [EMPTY], [])
    result = choose(tmp_path, capsys, "slim", [ADDMM], higher=[on_cuda([EMPTY]), higher])
    assert chosen(result) == "slim"
    assert result.manifest is not None
    assert result.manifest.devices == ("cpu", "cuda")
    assert result.manifest.isas == "x86-64, x86-64-v4"
    assert [variant.device for variant in result.manifest.variants] == ["cuda", "cpu"]
    assert result.manifest.codegen.device == "cpu"
    assert result.manifest.codegen.cuda == GPUS
    assert "Find_models_decoder_cuda(" in result.source


def test_the_cpu_and_cuda_each_have_what_they_call(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    result = choose(tmp_path, capsys, "slim", [ADDMM], higher=[on_cuda([TOPK])])
    assert 'device = "cuda": these operators have no kernel for GPUs:\n' in result.errors
    assert "addmm" not in result.errors
    result = choose(tmp_path, capsys, "slim", [SVD], libtorch=False, higher=[on_cuda([EMPTY])])
    assert result.errors == (
        '//models:decoder: devices = ["cpu", "cuda"]: such models run on the slim runtime alone, '
        "which lacks what the code for the CPU needs:\n"
        "  aten.linalg_svdvals.default (aten::linalg_svdvals)\n"
        "    used at node svd of the graph\n"
        "Either have the operator replaced by simpler ones if PyTorch can "
        '(decompositions = ["aten.linalg_svdvals.default"]), or compile a target of its own for '
        "each device\n"
    )
