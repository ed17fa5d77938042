"""Which weights are packed, and what lies in the file that a program reads at run time."""

from __future__ import annotations

import argparse
from pathlib import Path

import torch
from aoti_driver.artifacts import packed_weights
from aoti_driver.contract.manifest import ChosenShim, CodeManifest
from aoti_driver.packing import matmul, packed_format
from aoti_driver.program import recurrent
from aoti_driver.program.weights_file import raw_bytes, read_weights
from torch import nn

from tests.unit.driver.inductor import harness


class Layers(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(32, 48)
        self.bare = nn.Linear(48, 32, bias=False)
        self.tied = nn.Embedding(40, 32)
        self.conv = nn.Conv2d(3, 8, 3)
        self.depthwise = nn.Conv2d(8, 8, 3, groups=8)
        self.stack = nn.Parameter(torch.randn(3, 32, 24))
        self.turned = nn.Parameter(torch.randn(3, 20, 24))

    def forward(
        self, x: torch.Tensor, image: torch.Tensor, ids: torch.Tensor
    ) -> tuple[torch.Tensor, ...]:
        hidden = self.bare(torch.relu(self.linear(x)))
        logits = hidden @ self.tied.weight.T
        experts = torch.bmm(torch.bmm(x.expand(3, -1, -1), self.stack), self.turned.mT)
        return logits, self.depthwise(self.conv(image)), self.tied(ids), experts


def compiled(folder: Path) -> CodeManifest:
    torch.manual_seed(0)
    inputs = (torch.randn(4, 32), torch.randn(1, 3, 8, 8), torch.tensor([1, 2]))
    harness.freeze(folder, Layers().eval(), inputs)
    return harness.generate(folder, "layers")


def packed_file(folder: Path, shim: ChosenShim) -> dict[str, torch.Tensor]:
    parser = argparse.ArgumentParser()
    packed_weights.add_arguments(parser)
    flags = [
        f"--weights={folder / 'weights.safetensors'}",
        f"--manifest={harness.choose_shim(folder, shim)}",
        f"--out={folder / 'packed.safetensors'}",
    ]
    packed_weights.run(parser.parse_args(flags))
    return read_weights(folder / "packed.safetensors")


def test_packed(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    manifest = compiled(folder)
    found = {p.source: (p.kind, p.options, p.only) for p in manifest.codegen.packed}
    assert found == {
        "linear.weight": ("gemm_f32", {}, True),
        "bare.weight": ("gemm_f32", {}, True),
        "stack": ("gemm_f32_rows", {}, True),
        "turned": ("gemm_f32", {}, True),
        # The embedding reads tied.weight as it is: a second copy would not pay.
        "conv.weight": ("conv_f32", {"groups": 1}, True),
        "depthwise.weight": ("conv_depthwise_f32", {"groups": 8}, True),
    }

    weights = packed_file(folder, "slim")
    assert set(weights) == {
        "linear.weight#gemm_f32",
        "linear.bias",
        "bare.weight#gemm_f32",
        "stack#gemm_f32_rows",
        "turned#gemm_f32",
        "tied.weight",
        "conv.weight#conv_f32",
        "conv.bias",
        "depthwise.weight#conv_depthwise_f32",
        "depthwise.bias",
    }
    original = read_weights(folder / "weights.safetensors")
    expected = matmul.pack("gemm_f32", original["linear.weight"])
    actual = weights["linear.weight#gemm_f32"]
    assert torch.equal(actual[: len(expected)], expected)
    assert len(actual) % 64 == 0
    plain = raw_bytes(original["linear.weight"])
    about = packed_format.about("linear.weight#gemm_f32", plain, raw_bytes(actual[:-64]))
    assert bytes(raw_bytes(actual[-64:])) == about
    # What the bindings tell the runtime.
    for packed in manifest.codegen.packed:
        shape = original[packed.source].shape
        size = packed_format.layout_size(packed.kind, shape, packed.options)
        assert len(weights[packed.name]) == size + 64, packed.name


class Recurrent(nn.Module):
    """Two layers of as many steps as the input has."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.LSTM(12, 16, bidirectional=True, proj_size=8)
        self.second = nn.GRU(16, 16, batch_first=True)
        self.shared = nn.RNN(16, 16, bias=False)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = self.second(self.first(x)[0])[0]
        states: torch.Tensor = self.shared(y)[0]
        return states, dict(self.shared.named_parameters())["weight_hh_l0"] + 1


def test_weights_of_recurrent_layers(tmp_path: Path) -> None:
    """All matrices but one that is read otherwise, too: a second copy would not pay."""
    torch.manual_seed(0)
    shapes = ({0: torch.export.Dim("steps", min=9, max=50)},)
    with recurrent.kept_whole():
        harness.freeze(tmp_path, Recurrent().eval(), (torch.randn(20, 3, 12),), shapes=shapes)
    manifest = harness.generate(tmp_path, "recurrent")
    found = {p.source: (p.kind, p.options, p.only) for p in manifest.codegen.packed}
    names = [
        *(f"first.weight_{w}_l0{end}" for w in ("ih", "hh", "hr") for end in ("", "_reverse")),
        *("second.weight_ih_l0", "second.weight_hh_l0", "shared.weight_ih_l0"),
    ]
    assert found == dict.fromkeys(names, ("gemm_f32", {}, True))


def test_libtorch_reads_the_weights_as_they_are(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    compiled(folder)
    packed_file(folder, "libtorch")
    original = (folder / "weights.safetensors").read_bytes()
    assert (folder / "packed.safetensors").read_bytes() == original


def test_convolution_reads_its_weight_as_stored(tmp_path: Path) -> None:
    """Inductor would copy it into another layout in every run."""
    folder = tmp_path / "model"
    compiled(folder)
    assert "in_ptr" in harness.kernels(folder)
    wrapper = (folder / "wrapper.cpp").read_text(encoding="utf-8")
    call = wrapper[wrapper.index("aoti_torch_cpu_convolution(") :].split(";")[0]
    assert "c_conv_weight" in call, call
