"""The division of kernels into files: a changed kernel changes its file alone."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from aoti_driver.inductor import kernel_files
from aoti_driver.inductor.kernel_files import KERNELS_PER_FILE
from torch import Tensor, nn

from tests.unit.driver.inductor import harness

BEGIN = "#include <torch/csrc/inductor/cpp_prefix.h>\n"
TEMPLATE = BEGIN + "#include <c10/util/Unroll.h>\n"


def loop(name: object) -> str:
    return f'\n{BEGIN}extern "C"  void cpp_{name}() {{}}\n\n'


def template(name: object) -> str:
    return f'\n{TEMPLATE}extern "C"  void cpp_template_{name}() {{}}\n\n'


def test_many_kernels_share_few_files() -> None:
    files = kernel_files.split("".join(map(loop, range(2 * KERNELS_PER_FILE + 1))))
    assert list(files) == ["kernels_0.cpp", "kernels_1.cpp", "kernels_2.cpp"]
    counts = [text.count('extern "C"') for text in files.values()]
    assert counts == [KERNELS_PER_FILE, KERNELS_PER_FILE, 1]


def test_a_template_has_a_file_of_its_own() -> None:
    files = kernel_files.split(loop(0) + template(1) + loop(2) + template(3))
    assert list(files) == ["kernels_0.cpp", "template_0.cpp", "template_1.cpp"]
    assert "cpp_0" in files["kernels_0.cpp"] and "cpp_2" in files["kernels_0.cpp"]


def test_a_changed_kernel_changes_its_file_alone() -> None:
    kernels = [loop(i) for i in range(3 * KERNELS_PER_FILE)]
    before = kernel_files.split("".join(kernels))
    kernels[KERNELS_PER_FILE + 3] = loop("another" * 1000)
    after = kernel_files.split("".join(kernels))
    assert [n for n in before if before[n] != after[n]] == ["kernels_1.cpp"]


def test_a_program_without_kernels_has_a_file_too() -> None:
    assert kernel_files.split("\n") == {"kernels_0.cpp": ""}


class Product(nn.Module):
    """The addition is a part of the product, which no kernel computes."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = self.layer(x)
        return result


def test_without_kernels_no_header_is_compiled(tmp_path: Path) -> None:
    harness.freeze(tmp_path, Product(), (torch.randn(3, 4),))
    harness.generate(tmp_path, "product")
    (text,) = [path.read_text() for path in harness.sources(tmp_path) if "kernels_" in path.name]
    assert text.startswith("// ") and "#include" not in text


def test_text_before_the_first_kernel_is_refused() -> None:
    with pytest.raises(AssertionError, match="before its first kernel: 'struct S"):
        kernel_files.split("struct S {};\n" + loop(0))


class Layers(nn.Module):
    """A kernel for each of many products in a row, each of which differs by a number."""

    def __init__(self, middle: float) -> None:
        super().__init__()
        self.numbers = [float(i) for i in range(20)]
        self.numbers[10] = middle
        self.layers = nn.ModuleList(nn.Linear(4, 4) for _ in self.numbers)

    def forward(self, x: Tensor) -> Tensor:
        for number, layer in zip(self.numbers, self.layers):
            x = torch.relu(layer(x)) + number
        return x


def test_inductors_text(tmp_path: Path) -> None:
    """One number in the tenth of twenty kernels: nothing but its own file is another."""
    for folder, middle in ((tmp_path / "one", 0.5), (tmp_path / "other", 0.25)):
        torch.manual_seed(0)
        harness.freeze(folder, Layers(middle), (torch.randn(3, 4),))
        harness.generate(folder, "layers")
    one, other = (harness.sources(tmp_path / name) for name in ("one", "other"))
    assert [path.name for path in one] == [path.name for path in other]
    assert len(one) == 3, "the wrapper and two files of kernels"
    different = [a.name for a, b in zip(one, other) if a.read_bytes() != b.read_bytes()]
    assert different == ["kernels_0.cpp"]
