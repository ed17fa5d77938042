"""One weights file for several methods."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from aoti_driver.artifacts import provenance
from aoti_driver.contract.code_parts import Codegen, Packed
from aoti_driver.contract.manifest import LibraryManifest, ProgramManifest
from aoti_driver.contract.manifest_file import to_json
from aoti_driver.packing import packed_format
from aoti_driver.process import cli
from aoti_driver.program.weights_file import raw_bytes, read_weights, write_weights

KEY = provenance.METADATA


def manifest(path: Path, method: str, packed: tuple[Packed, ...] = ()) -> Path:
    program = ProgramManifest(f"//m:{method}", method, "2.13.0", False, (), (), (), (), "")
    codegen = Codegen(method, "cpu", "x86-64", {}, (), (), packed=packed)
    path.write_text(to_json(LibraryManifest(program, codegen, "slim")), encoding="utf-8")
    return path


def merge(
    folder: Path,
    weights: dict[str, dict[str, torch.Tensor]],
    packed: tuple[Packed, ...] = (),
) -> tuple[int, Path]:
    arguments = []
    for method, tensors in weights.items():
        write_weights(folder / method, tensors, {KEY: f'{{"of": "{method}"}}'})
        of_method = tuple(p for p in packed if p.name in tensors)
        arguments.append(f"--manifest={manifest(folder / f'{method}.json', method, of_method)}")
        arguments.append(f"--weights={folder / method}")
    spec = {"label": "//m:both", "methods": list(weights)}
    (folder / "spec").write_text(json.dumps(spec), encoding="utf-8")
    out = folder / "merged"
    return cli.main(["merge_weights", f"--spec={folder / 'spec'}", *arguments, f"--out={out}"]), out


def test_a_tensor_of_both_is_stored_once(tmp_path: Path) -> None:
    table, own, odd = torch.randn(4, 32), torch.randn(3), torch.tensor([True, False, True])
    first = {"odd": odd, "table": table, "lifted_tensor_0": torch.ones(2)}
    second = {"own": own, "table": table.clone(), "lifted_tensor_0": torch.zeros(2)}
    code, out = merge(tmp_path, {"encode": first, "decode": second})
    assert code == 0
    merged = read_weights(out)
    expected = {
        "odd": odd,
        "table": table,
        "own": own,
        "encode/lifted_tensor_0": torch.ones(2),
        "decode/lifted_tensor_0": torch.zeros(2),
    }
    assert merged.keys() == expected.keys()
    for name, tensor in expected.items():
        assert torch.equal(merged[name], tensor), name
    # As write_weights() would have written them: aligned, and the same bytes in each build.
    metadata = {f"{KEY}.{m}": f'{{"of": "{m}"}}' for m in ("encode", "decode")}
    write_weights(tmp_path / "again", {n: expected[n] for n in merged}, metadata)
    assert (tmp_path / "again").read_bytes() == out.read_bytes()


def test_a_packed_tensor_gets_its_new_name(tmp_path: Path) -> None:
    plain, layout = torch.ones(1), torch.zeros(64, dtype=torch.uint8)

    def packed(name: str) -> torch.Tensor:
        about = packed_format.about(name, raw_bytes(plain), raw_bytes(layout))
        return torch.cat([layout, torch.frombuffer(bytearray(about), dtype=torch.uint8)])

    items = (Packed("lifted_tensor_0", "gemm_f32", {}, True), Packed("w", "gemm_f32", {}, True))
    weights = {"a": {item.name: packed(item.name) for item in items}, "b": {"x": plain}}
    code, out = merge(tmp_path, weights, items)
    assert code == 0
    merged = read_weights(out)
    for name in ("a/lifted_tensor_0#gemm_f32", "w#gemm_f32"):
        assert torch.equal(merged[name], packed(name))


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (
            torch.tensor([1.0, 3.0]),
            '//m:both: the elements of "w" have other values in encode (//m:encode) than in '
            "decode (//m:decode). Methods share tensors by name: export both from the same module "
            "and weights, or rename the tensor in one of them.",
        ),
        (
            torch.tensor([[1.0, 2.0]]),
            '//m:both: "w" is F32[2] in encode (//m:encode), and F32[1, 2] in decode (//m:decode).',
        ),
        # As precision = "int8" stores a matrix that only one of the two reads in no other way.
        (
            torch.tensor([64, 127], dtype=torch.int8),
            '//m:both: "w" is F32[2] in encode (//m:encode), and I8[2] in decode (//m:decode).',
        ),
        (
            torch.tensor([1, 2], dtype=torch.int32),
            '//m:both: "w" is F32[2] in encode (//m:encode), and I32[2] in decode (//m:decode).',
        ),
    ],
)
def test_disagreement(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], other: torch.Tensor, message: str
) -> None:
    weights = {"encode": {"w": torch.tensor([1.0, 2.0])}, "decode": {"w": other}}
    code, out = merge(tmp_path, weights)
    assert code == 1 and message in capsys.readouterr().err
    assert not out.exists()


def test_methods_without_weights(tmp_path: Path) -> None:
    code, out = merge(tmp_path, {"a": {}, "b": {}})
    assert code == 0 and read_weights(out) == {}
