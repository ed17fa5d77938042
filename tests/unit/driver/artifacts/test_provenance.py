"""The provenance of artifacts: the same for the same inputs, and found in each kind."""

from __future__ import annotations

import dataclasses
import json
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from aoti_driver.artifacts import info, provenance, sbom
from aoti_driver.base import digests
from aoti_driver.base.errors import DriverError
from aoti_driver.contract.code_parts import Codegen, CudaCode
from aoti_driver.contract.manifest import LibraryManifest, ProgramManifest
from aoti_driver.contract.manifest_file import to_json
from aoti_driver.contract.program_parts import Dim, Input, Output
from aoti_driver.contract.size_expr import Name, Number
from aoti_driver.process import cli
from aoti_driver.program import safetensors_header
from aoti_driver.program.archive import Pt2Archive
from aoti_driver.program.weights_file import read_weights, write_weights

ROOT = Path(__file__).parents[4]

LOCK = """\
--index-url https://example.org/simple
numpy==2.1.0 \\
    --hash=sha256:00
    # via torch
torch==2.13.0 ; python_version >= "3.10" \\
    --hash=sha256:01
typing_extensions==4.1 --hash=sha256:02
"""

SPEC = {"label": "//pkg:m", "python": "3.11", "rules_aoti": "1.2.3"}

PROGRAM = ProgramManifest(
    label="//pkg:m",
    name="m",
    torch_version="2.13.0+cpu",
    strict=False,
    dims=(Dim("batch", 1, 4),),
    inputs=(Input("x", "x", "float32", (Name("batch"),), (Number(1),)),),
    outputs=(Output("y", "", "float32", (Name("batch"),)),),
    constants=(),
    graph_sha256="9" * 64,
)
CODE = Codegen("m", "cpu", "x86-64-v3", {"a.b": "1"}, (), ())
LIBRARY = LibraryManifest(PROGRAM, CODE, "slim")

Describe = Callable[..., Path]


@pytest.fixture
def describe(tmp_path: Path) -> Describe:
    """Runs the subcommand; gives what it wrote."""

    def run(
        *flags: str,
        manifest: ProgramManifest | LibraryManifest = LIBRARY,
        out: str = "m.provenance.json",
    ) -> Path:
        for name, text in (
            ("spec.json", json.dumps(SPEC)),
            ("manifest.json", to_json(manifest)),
            ("lock.txt", LOCK),
        ):
            (tmp_path / name).write_text(text, encoding="utf-8")
        code = cli.main(
            [
                "provenance",
                f"--spec={tmp_path / 'spec.json'}",
                f"--manifest={tmp_path / 'manifest.json'}",
                f"--lock={tmp_path / 'lock.txt'}",
                f"--out={tmp_path / out}",
                *flags,
            ]
        )
        assert code == 0
        return tmp_path / out

    return run


def weights_file(tmp_path: Path) -> Path:
    path = tmp_path / "w.safetensors"
    write_weights(path, {"a": torch.ones(32), "b": torch.zeros(3)})
    return path


def test_document(describe: Describe, tmp_path: Path) -> None:
    weights = weights_file(tmp_path)
    document = json.loads(describe(f"--weights={weights}", f"--packed={weights}").read_text())
    sha256, size = digests.of_file(weights)
    assert document == {
        "code": {
            "device": "cpu",
            "isa": "x86-64-v3",
            "options": {"a.b": "1"},
            "runtime": "slim",
        },
        "format": 1,
        "graph_sha256": "9" * 64,
        "model": "//pkg:m",
        "packed_weights": {"sha256": sha256, "size": size},
        "rules_aoti": "1.2.3",
        "toolchain": {
            "driver_sha256": provenance.driver_sha256(),
            "lock_sha256": digests.of_file(tmp_path / "lock.txt")[0],
            "python": "3.11",
        },
        "torch": "2.13.0+cpu",
        "weights": {"sha256": sha256, "size": size},
    }


def test_code_says_nothing_of_weights(describe: Describe) -> None:
    """Else new weights would compile it anew."""
    assert "weights" not in describe().read_text()


def test_text(describe: Describe, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    document = describe(f"--weights={weights_file(tmp_path)}")
    assert cli.main(["info", f"--provenance={document}"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("//pkg:m\n  rules_aoti       1.2.3\n  torch            2.13.0+cpu\n")
    for title in ("graph", "weights", "lock file", "toolchain"):
        assert re.search(rf"^  {title} +sha256 [0-9a-f]{{64}}", text, re.MULTILINE), title
    assert cli.main(["info", f"--provenance={document}", "--json"]) == 0
    assert capsys.readouterr().out == document.read_text()


def test_driver_digest_is_of_contents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = provenance.driver_sha256()
    copy = tmp_path / "elsewhere"
    shutil.copytree(provenance._DRIVER, copy)
    monkeypatch.setattr(provenance, "_DRIVER", copy)
    assert provenance.driver_sha256() == first
    (copy / "base" / "errors.py").write_text("")
    assert provenance.driver_sha256() != first


# -- in files --


def note(tmp_path: Path, *documents: Path) -> Path:
    """An assembler file like rules/private/provenance.bzl's."""
    bzl = (ROOT / "rules/private/provenance.bzl").read_text(encoding="utf-8")
    template = re.search(r'_NOTE = """\\\n(.*?)"""', bzl, re.DOTALL)
    assert template
    path = tmp_path / "note.S"
    path.write_text(
        "".join(template[1].format(program=f"m{i}", path=d) for i, d in enumerate(documents))
    )
    return path


def run(*command: object) -> None:
    subprocess.run([str(word) for word in command], check=True)


def found(path: Path) -> list[dict[str, Any]]:
    return info.of_file(path, path.name)


def test_binaries(describe: Describe, tmp_path: Path) -> None:
    """A binary of two models: linked, stripped, with everything unused removed."""
    other = LibraryManifest(dataclasses.replace(PROGRAM, torch_version="2.9.1"), CODE, "slim")
    one, two = describe(manifest=other, out="1.json"), describe(out="2.json")
    assert one.stat().st_size % 4 != 0  # padding stands between the notes
    expected = [json.loads(path.read_text()) for path in (one, two)]
    source, objects, main = note(tmp_path, one, two), tmp_path / "note.o", tmp_path / "main.c"
    main.write_text("int main(void) { return 0; }")
    run("gcc", "-c", source, "-o", objects)
    assert found(objects) == expected
    run("ar", "crs", tmp_path / "libm.a", objects)
    assert found(tmp_path / "libm.a") == expected
    for name, flags in (("m.so", ["-shared", "-fPIC"]), ("m", [])):
        binary = tmp_path / name
        run("gcc", *flags, main, objects, "-Wl,--gc-sections", "-Wl,-s", "-o", binary)
        assert found(binary) == expected
        run("strip", "--strip-all", binary)
        assert found(binary) == expected


def test_archives_and_weights(describe: Describe, tmp_path: Path) -> None:
    weights = weights_file(tmp_path)
    path = describe(f"--weights={weights}")
    document = json.loads(path.read_text())
    with Pt2Archive(tmp_path / "m.pt2") as archive:
        archive.write_string("data/other", "x")
        archive.write_file(provenance.RECORD, str(path))
    assert found(tmp_path / "m.pt2") == [document]
    assert found(path) == [document]

    text = provenance.with_weights(str(describe(out="code.json")), str(weights))
    packed = tmp_path / "packed.safetensors"
    safetensors_header.copy_with_metadata(weights, packed, {provenance.METADATA: text})
    assert found(packed) == [document]
    # The tensors are the same, and still aligned for the runtime.
    before, after = read_weights(weights), read_weights(packed)
    assert list(before) == list(after)
    assert all(torch.equal(before[name], after[name]) for name in before)
    header, begin = safetensors_header.read_header(packed, "")
    assert begin % 64 == 0 and list(header) == ["a", "b"]
    write_weights(packed, before, {provenance.METADATA: text})
    assert found(packed) == [document]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("text.txt", b"hello", "x: no provenance of rules_aoti is in this file"),
        ("other.json", b"{}", "no provenance"),
        ("cut.so", b"\x7fELF\x02\x01\x01", "x: the file is damaged"),
        ("cut.pt2", b"PK\x03\x04....", "x: the file is damaged"),
        ("broken.json", b"{", "x: the file is damaged"),
        (
            "new.json",
            b'{"format": 2, "rules_aoti": "9", "graph_sha256": ""}',
            "x: provenance of format 2, this rules_aoti reads 1",
        ),
    ],
)
def test_other_files(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DriverError, match=re.escape(message)):
        info.of_file(tmp_path / name, "x")
    with pytest.raises(DriverError, match="x: can't be read: No such file"):
        info.of_file(tmp_path / "missing", "x")


# -- the bill of materials --


def bill(document: dict[str, Any], lock: str = LOCK) -> dict[str, Any]:
    made = sbom.make(document, PROGRAM, lock, [])
    assert made == sbom.make(document, PROGRAM, lock, [])
    return made


def test_bill(describe: Describe, tmp_path: Path) -> None:
    document = json.loads(describe(f"--weights={weights_file(tmp_path)}").read_text())
    made = bill(document)
    assert (made["bomFormat"], made["specVersion"]) == ("CycloneDX", "1.6")
    assert not {"serialNumber", "timestamp"} & {*made, *made["metadata"]}
    model = made["metadata"]["component"]
    assert (model["type"], model["name"]) == ("machine-learning-model", "m")
    properties = {p["name"]: p["value"] for p in model["properties"]}
    assert properties["rules_aoti:weights_sha256"] == document["weights"]["sha256"]
    assert properties["rules_aoti:lock_sha256"] == document["toolchain"]["lock_sha256"]
    components = {c["name"]: c for c in made["components"]}
    assert components["torch"]["purl"] == "pkg:pypi/torch@2.13.0%2Bcpu"
    assert components["typing-extensions"]["version"] == "4.1"
    assert components["torch"]["scope"] == components["numpy"]["scope"] == "excluded"
    assert components["rules_aoti"]["scope"] == "required"
    references = [c["bom-ref"] for c in made["components"]]
    assert len(references) == len(set(references))
    assert {d["ref"] for d in made["dependencies"]} == {*references, "//pkg:m"}
    assert all(set(d.get("dependsOn", [])) <= set(references) for d in made["dependencies"])


def test_code_for_cuda(describe: Describe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SPEC, "triton", "3.7.1")
    cuda = dataclasses.replace(CODE, device="cuda", cuda=CudaCode(("sm_80", "sm_90"), 3))
    document = json.loads(describe(manifest=LibraryManifest(PROGRAM, cuda, "slim")).read_text())
    assert document["triton"] == "3.7.1"
    assert document["code"]["cuda_archs"] == ["sm_80", "sm_90"]
    lines = provenance.readable(document).splitlines()
    assert [line for line in lines if line.split() == ["GPUs", "sm_80,", "sm_90"]]
    made = bill(document, lock="")
    triton = next(c for c in made["components"] if c["name"] == "triton")
    assert (triton["version"], triton["scope"]) == ("3.7.1", "excluded")
    properties = {p["name"]: p["value"] for p in made["metadata"]["component"]["properties"]}
    assert properties["rules_aoti:cuda_archs"] == "sm_80, sm_90"
    assert properties["rules_aoti:device"] == "cuda"


def test_sources_of_operators(describe: Describe, tmp_path: Path) -> None:
    sources = [tmp_path / "scale.cc", tmp_path / "scale.h"]
    for source in sources:
        source.write_text(source.name, encoding="utf-8")
    path = describe(*(f"--operator_source=//ops:scale=ops/{s.name}={s}" for s in sources))
    digest = digests.of_file(sources[0])[0]
    document = json.loads(path.read_text(encoding="utf-8"))
    assert document["custom_ops"]["//ops:scale"]["ops/scale.cc"] == digest
    assert sorted(document["custom_ops"]["//ops:scale"]) == ["ops/scale.cc", "ops/scale.h"]
    line = f"  operators //ops:scale  ops/scale.cc, sha256 {digest}"
    assert line in provenance.readable(document).splitlines()
    bill = sbom.make(document, PROGRAM, "", [])
    (part,) = [part for part in bill["components"] if part["name"] == "ops/scale.cc"]
    assert part["description"] == "source of the operators //ops:scale"
    assert part["hashes"] == [{"alg": "SHA-256", "content": digest}]
    assert part["bom-ref"] in bill["dependencies"][0]["dependsOn"]


def test_bill_of_a_model_on_libtorch(describe: Describe) -> None:
    document = json.loads(describe().read_text())
    document["code"]["runtime"] = "libtorch"
    made = bill(document)
    torch_package = next(c for c in made["components"] if c["name"] == "torch")
    assert torch_package["scope"] == "required"
    assert torch_package["bom-ref"] in made["dependencies"][0]["dependsOn"]


def test_bill_without_a_lock(describe: Describe) -> None:
    document = json.loads(describe().read_text())
    document["toolchain"]["lock_sha256"] = None
    names = [c["name"] for c in bill(document, lock="")["components"]]
    assert names == ["graph", "rules_aoti", "torch"]


def test_version_is_the_modules() -> None:
    bzl = (ROOT / "rules/private/version.bzl").read_text(encoding="utf-8")
    module = (ROOT / "MODULE.bazel").read_text(encoding="utf-8")
    version = re.search(r'^VERSION = "(.+)"$', bzl, re.MULTILINE)
    expected = re.search(r'^    version = "(.+)",$', module, re.MULTILINE)
    assert version and expected and version[1] == expected[1]


@pytest.mark.parametrize(("minor", "numpy"), [(10, "2.2.6"), (11, "2.4.6"), (14, "2.4.6")])
def test_a_bill_has_what_is_for_its_python(
    monkeypatch: pytest.MonkeyPatch, minor: int, numpy: str
) -> None:
    lock = (
        "numpy==2.2.6 ; python_full_version < '3.11' \\\n    --hash=sha256:00\n"
        "numpy==2.4.6 ; python_full_version >= '3.11' and sys_platform == 'linux'\n"
        'old==1 ; python_version < "3.10"\n'
    )
    monkeypatch.setattr("sys.version_info", (3, minor, 2, "final", 0))
    assert list(sbom._packages(lock)) == [("numpy", numpy)]
