"""The generated class of a model with several methods, and programs that can't be its methods."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from aoti_driver.base.errors import DriverError
from aoti_driver.bindings import (
    method_bindings,
    method_header,
    method_implementation,
    method_pymodule,
    method_stub,
)
from aoti_driver.bindings.model import MethodsSpec, Spec
from aoti_driver.contract import method_weights
from aoti_driver.contract.code_parts import Codegen, Packed, ProgramConstant
from aoti_driver.contract.manifest import LibraryManifest, ProgramManifest
from aoti_driver.contract.manifest_file import to_json
from aoti_driver.contract.program_parts import Constant, Dim, Input, Output
from aoti_driver.contract.size_expr import Name, Number

NAMES = Spec(
    namespace="models",
    class_name="Whisper",
    header="models/whisper.h",
    py_module="whisper",
    weights_runfile="_main/models/whisper.safetensors",
    embedded=False,
    threads=0,
)
SPEC = MethodsSpec("//models:whisper", "m_whisper", ("encode", "decode_step"), NAMES)


def library(name: str, constants: list[Constant], **codegen: Any) -> LibraryManifest:
    used = [
        ProgramConstant(f"c{i}", c.name, c.dtype, c.shape, tuple(1 for _ in c.shape))
        for i, c in enumerate(constants)
    ]
    return LibraryManifest(
        program=ProgramManifest(
            label=f"//models:whisper_{name}",
            name=f"whisper_{name}",
            torch_version="2.13.0+cpu",
            strict=False,
            dims=(Dim("n", 1, 64),),
            inputs=(Input("x", "x", "float32", (Name("n"),), (Number(1),)),),
            outputs=(Output("output", "", "float32", (Name("n"), Number(2))),),
            constants=tuple(constants),
            graph_sha256="",
        ),
        codegen=Codegen(
            **{
                "program_id": f"m_{name}",
                "device": "cpu",
                "isa": "x86-64",
                "options": {},
                "shims": (),
                "constants": tuple(used),
                **codegen,
            }
        ),
        shim="slim",
    )


TABLE = Constant("table", "parameter", "float32", (4, 8))
STEP = Constant("step", "buffer", "int64", (1,))
LIFTED = Constant("lifted_tensor_0", "constant", "float32", (3,))
GEMM = Packed("table", "gemm_f32", {}, only=True)
ENCODE = library("encode", [TABLE, dataclasses.replace(STEP, mutated=True), LIFTED], packed=(GEMM,))
DECODE = library("decode_step", [STEP, TABLE, dataclasses.replace(LIFTED, shape=(5,))])


def test_the_class(check_cpp: Callable[[str, str, str], None]) -> None:
    methods = method_bindings.build(SPEC, [ENCODE, DECODE])
    header = method_header.generate(methods)
    for line in (
        "class Whisper {",
        "  struct EncodeInputs {",
        "  ::aoti::Result<EncodeOutputs> Encode(const EncodeInputs& inputs) const;",
        "  ::aoti::Result<DecodeStepOutputs> DecodeStep(const DecodeStepInputs& inputs) const;",
        "  // decode_step: //models:whisper_decode_step",
    ):
        assert line in header.splitlines()
    check_cpp("models/whisper.h", header, method_implementation.generate(methods))


def test_methods_share_the_table_of_weights() -> None:
    methods = method_bindings.build(SPEC, [ENCODE, DECODE])
    source = method_implementation.generate(methods)
    assert source.count('{"table", DType::kFloat32') == 1
    # decode_step only reads the buffer, but the table says that encode writes to it.
    assert source.count('{"step", DType::kInt64, Ints(2, 1), true}') == 1
    # Names that torch made up are of one program alone.
    assert source.count('{"encode/lifted_tensor_0", ') == 1
    assert source.count('{"decode_step/lifted_tensor_0", ') == 1
    # decode_step reads the plain table, so that the file must have it, and not the packed one.
    assert '{0, "gemm_f32", "table#gemm_f32", 512, false}' in source
    assert source.count("constexpr bool kReadsPacked[] = {\n    true,\n};") == 1
    assert source.count("constexpr bool kReadsPacked[] = {\n    false,\n};") == 1


def test_a_tensor_that_all_read_packed_needs_no_plain_copy() -> None:
    both = {"a": ENCODE, "b": library("b", [TABLE], packed=(GEMM,))}
    assert [p.only for p in method_weights.merge("//m", both).packed] == [True]
    libtorch = dataclasses.replace(both["b"], shim="libtorch")
    assert [p.only for p in method_weights.merge("//m", {**both, "b": libtorch}).packed] == [False]


def test_command(tmp_path: Path) -> None:
    from aoti_driver.process import cli

    for name, each in (("e", ENCODE), ("d", DECODE)):
        (tmp_path / name).write_text(to_json(each), encoding="utf-8")
    (tmp_path / "spec").write_text(json.dumps(dataclasses.asdict(SPEC)), encoding="utf-8")
    arguments = [f"--spec={tmp_path / 'spec'}"]
    arguments += [f"--manifest={tmp_path / name}" for name in ("e", "d")]
    outputs = ("header", "cc", "digest", "pymodule", "pyi")
    arguments += [f"--out_{name}={tmp_path / name}.out" for name in outputs]
    assert cli.main(["method_bindings", *arguments]) == 0
    assert "class Whisper {" in (tmp_path / "header.out").read_text(encoding="utf-8")
    assert "PyInit_whisper()" in (tmp_path / "pymodule.out").read_text(encoding="utf-8")
    assert "    def decode_step(" in (tmp_path / "pyi.out").read_text(encoding="utf-8")
    symbol = f"{SPEC.program_id}_digest[]"
    assert f'{symbol} = "' in (tmp_path / "digest.out").read_text(encoding="utf-8")
    assert f"const char {symbol};" in (tmp_path / "cc.out").read_text(encoding="utf-8")


def test_another_graph_changes_the_digest_alone() -> None:
    first, other = (
        method_bindings.build(SPEC, [_replace(ENCODE, graph_sha256=digest), DECODE])
        for digest in ("1f2e", "3d4c")
    )
    assert first.digest != other.digest
    for generate in (
        *(method_header.generate, method_implementation.generate),
        *(method_pymodule.generate, method_stub.generate),
    ):
        assert generate(first) == generate(other)


def _replace(library: LibraryManifest, **changes: Any) -> LibraryManifest:
    return dataclasses.replace(library, program=dataclasses.replace(library.program, **changes))


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (
            _replace(DECODE, torch_version="2.14.0"),
            "//models:whisper: encode (//models:whisper_encode) is compiled for torch 2.13.0+cpu, "
            "and decode_step (//models:whisper_decode_step) for torch 2.14.0: the methods of a "
            "model run in one process, on one device. Build both with one toolchain.",
        ),
        (
            library("decode_step", [], device="cuda"),
            "//models:whisper: encode (//models:whisper_encode) is compiled for the device cpu, "
            "and decode_step (//models:whisper_decode_step) for the device cuda: ",
        ),
        (
            library("decode_step", [dataclasses.replace(TABLE, shape=(4, 9))]),
            '//models:whisper: "table" is float32[4, 8] in encode (//models:whisper_encode), and '
            "float32[4, 9] in decode_step (//models:whisper_decode_step). Methods share tensors "
            "by name: export both from the same module, or rename one of them.",
        ),
        (
            library("decode_step", [dataclasses.replace(TABLE, mutated=True)]),
            '//models:whisper: encode (//models:whisper_encode) reads "table" in a layout that '
            "the build makes, and another method writes to it",
        ),
    ],
)
def test_programs_that_do_not_fit(other: LibraryManifest, message: str) -> None:
    with pytest.raises(DriverError) as caught:
        method_bindings.build(SPEC, [ENCODE, other])
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (
            ("encode", "encodE"),
            None,
        ),
        (
            ("run_it", "runIt"),
            '//models:whisper: "method run_it" and "method runIt" both become "RunIt"',
        ),
        (
            ("whisper", "decode"),
            '//models:whisper: "class Whisper" and "method whisper" both become "Whisper"',
        ),
        (
            ("encode", "encode_inputs"),
            '//models:whisper: "struct EncodeInputs" and "method encode_inputs" both become',
        ),
        (("load", "run"), '//models:whisper: "function Load()" and "method load" both become'),
    ],
)
def test_names(names: tuple[str, str], message: str | None) -> None:
    spec = dataclasses.replace(SPEC, methods=names)
    if message is None:
        method_bindings.build(spec, [ENCODE, DECODE])
        return
    with pytest.raises(DriverError) as caught:
        method_bindings.build(spec, [ENCODE, DECODE])
    assert str(caught.value).startswith(message)
