"""Manifests as files: what is written is read again, and anything else is refused by what it is."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from aoti_driver.base.errors import DriverError
from aoti_driver.contract.code_parts import Codegen, Packed, ProgramConstant, Shim, Variant
from aoti_driver.contract.manifest import (
    CodeManifest,
    LibraryManifest,
    Manifest,
    ProgramManifest,
)
from aoti_driver.contract.manifest_file import read_manifest, to_json
from aoti_driver.contract.program_parts import Constant, Dim, Input, Output
from aoti_driver.contract.size_expr import Name, Number, Operation, affine

PROGRAM = ProgramManifest(
    label="//m:e",
    name="e",
    torch_version="2.13.0",
    strict=True,
    dims=(Dim("n", 1, 4), Dim("m", 2, 8, affine(2, "n", 0))),
    inputs=(Input("x", "x", "int64", (Name("n"),), (Number(1),), values=(0, 9)),),
    outputs=(Output("y", "", "float32", (Name("n"),)),),
    constants=(Constant("w", "parameter", "float32", (2, 3)),),
    graph_sha256="00",
    guards=(Operation("==", (Operation("%", (Name("n"), Number(2))), Number(0))),),
)
CONSTANT = ProgramConstant("c", "w", "float32", (3, 2), (1, 3))
CODE = CodeManifest(
    PROGRAM,
    Codegen(
        program_id="m_e",
        device="cpu",
        isa="x86-64",
        options={"a.b": "1"},
        shims=(Shim("f", ("aten.f.default",), ("f_1",), ("float32->float32",)),),
        constants=(CONSTANT,),
        packed=(Packed("w", "gemm_f32", {"groups": 1}, only=True),),
    ),
)
VARIANTS = (Variant("x86-64-v3", "m_e_v3", (CONSTANT,)),)
LIBRARY = LibraryManifest(PROGRAM, CODE.codegen, "slim", VARIANTS)
STAGES: tuple[Manifest, ...] = (PROGRAM, CODE, LIBRARY)

FREEZE = (
    "\n  Freeze the program anew with this version of rules_aoti, if it is a frozen one: bazel run "
)


def refused(path: Path, *stages: type[Any], who: str = "//m:e") -> str:
    with pytest.raises(DriverError) as caught:
        read_manifest(path, *stages, who=who)
    return str(caught.value)


@pytest.fixture
def file(tmp_path: Path) -> Callable[[str | bytes], Path]:
    def write(content: str | bytes) -> Path:
        path = tmp_path / "manifest.json"
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write


Write = Callable[[str | bytes], Path]


def changed(manifest: Manifest, change: Callable[[dict[str, Any]], object]) -> str:
    document = json.loads(to_json(manifest))
    change(document)
    return json.dumps(document)


@pytest.mark.parametrize("manifest", STAGES)
def test_what_is_written_is_read(file: Write, manifest: Manifest) -> None:
    path = file(to_json(manifest))
    assert read_manifest(path, type(manifest)) == manifest
    lines = [line.strip().removesuffix(",") for line in path.read_text().splitlines()]
    assert '"guards": [["==", ["%", "n", 2], 0]]' in lines and '"shape": ["n"]' in lines
    written = json.loads(path.read_text(), object_pairs_hook=dict)
    assert json.dumps(written) == json.dumps(written, sort_keys=True)


@pytest.mark.parametrize(
    ("expected", "text"),
    [
        (ProgramManifest, '"program" (the output of torch_export or torch_import)'),
        (CodeManifest, '"code" (the output of AotiCodegen)'),
        (LibraryManifest, '"library" (the output of aoti_library)'),
    ],
)
def test_other_stages_are_refused(file: Write, expected: type[Manifest], text: str) -> None:
    others = [manifest for manifest in STAGES if type(manifest) is not expected]
    assert len(others) == 2
    for other in others:
        message = refused(file(to_json(other)), expected)
        assert message.splitlines()[0] == (
            f'//m:e: manifest of stage "{other.STAGE}" where stage {text} is expected'
        )


def test_one_of_two_stages(file: Write) -> None:
    for manifest in (PROGRAM, LIBRARY):
        path = file(to_json(manifest))
        assert read_manifest(path, ProgramManifest, LibraryManifest) == manifest
    assert refused(file(to_json(CODE)), LibraryManifest, ProgramManifest).startswith(
        '//m:e: manifest of stage "code" where stage "library" (the output of aoti_library) or '
        '"program" (the output of torch_export or torch_import) is expected'
    )


def test_a_document_without_a_stage(file: Write) -> None:
    message = refused(file(changed(LIBRARY, lambda d: d.pop("stage"))), LibraryManifest)
    assert message.startswith('//m:e: manifest of stage null where stage "library"')


def test_another_schema(file: Write) -> None:
    """What earlier versions froze: the message has the command that freezes it anew."""
    assert refused(
        file(changed(PROGRAM, lambda d: d.update(schema_version=1))), ProgramManifest
    ) == (f"//m:e: manifest has schema_version 1, this rules_aoti reads 2{FREEZE}//m:e.freeze")
    # What is built is never of another version: there is nothing to freeze.
    assert refused(
        file(changed(LIBRARY, lambda d: d.update(schema_version=1))), LibraryManifest
    ) == ("//m:e: manifest has schema_version 1, this rules_aoti reads 2")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d.pop("shim"), "manifest: missing field 'shim'"),
        (lambda d: d.pop("variants"), "manifest: missing field 'variants'"),
        (lambda d: d.update(more=1), "manifest: unknown field 'more'"),
        (lambda d: d.update(shim=""), 'manifest.shim: expected "slim" or "libtorch", got \'\''),
        (lambda d: d.update(codegen=None), "manifest.codegen: expected an object, got NoneType"),
        (lambda d: d["program"].pop("label"), "manifest.program: missing field 'label'"),
        (lambda d: d["program"].update(stage="x"), "manifest.program: unknown field 'stage'"),
        (
            lambda d: d["program"].update(strict=1),
            "manifest.program.strict: expected bool, got int",
        ),
        (
            lambda d: d["program"]["dims"][0].update(min=True),
            "manifest.program.dims[0].min: expected int, got bool",
        ),
        (
            lambda d: d["program"]["inputs"][0].update(values=[1]),
            "manifest.program.inputs[0].values: expected 2 entries, got 1",
        ),
        (
            lambda d: d["program"]["inputs"][0].update(shape=["2*n"]),
            'manifest.program.inputs[0].shape[0]: expected a size, such as 3, "seq" or '
            '["+", ["*", 2, "half"], 1], got \'2*n\'',
        ),
        (
            lambda d: d["program"].update(guards=[["==", "n"]]),
            'manifest.program.guards[0]: "==" can\'t have the operands n',
        ),
        (
            lambda d: d["codegen"]["packed"][0]["options"].update(groups="1"),
            "manifest.codegen.packed[0].options.groups: expected int, got str",
        ),
        (lambda d: d.update(variants={}), "manifest.variants: expected a list, got dict"),
    ],
)
def test_fields_that_do_not_fit(
    file: Write, change: Callable[[dict[str, Any]], object], message: str
) -> None:
    assert refused(file(changed(LIBRARY, change)), LibraryManifest) == f"//m:e: {message}"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "this is no manifest: Expecting value: line 1 column 1 (char 0)"),
        (b"[]", "this is no manifest: expected an object, got list"),
        (b'{"a": \xff}', "this is no manifest: 'utf-8' codec can't decode byte 0xff"),
        (b"{}", "manifest has schema_version None, this rules_aoti reads 2"),
    ],
)
def test_files_that_are_no_manifest(file: Write, content: bytes, message: str) -> None:
    assert refused(file(content), LibraryManifest).startswith(f"//m:e: {message}")
    assert refused(file(content), ProgramManifest).endswith(
        f"{FREEZE}the .freeze target of the model"
    )


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    for path, reason in ((tmp_path / "none", "No such file or directory"), (tmp_path, "Is a dir")):
        message = refused(path, ProgramManifest)
        assert message.startswith(f"//m:e: the manifest can't be read: {reason}")
        # Without a label, the message names the file.
        assert refused(path, ProgramManifest, who="").startswith(f"{path}: the manifest can't")
