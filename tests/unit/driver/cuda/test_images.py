"""The architectures, the file of kernels, and its table in C++."""

from __future__ import annotations

import pytest
from aoti_driver.base.errors import DriverError
from aoti_driver.cuda import archs, images
from aoti_driver.cuda.images import Image, Kernel


def test_archs_are_sorted_and_unique() -> None:
    found = archs.find(["sm_90", "sm_80", "sm_100", "sm_80"], "//pkg:m")
    assert [(arch.name, arch.capability) for arch in found] == [
        ("sm_80", 80),
        ("sm_90", 90),
        ("sm_100", 100),
    ]


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ([], '//pkg:m: cuda_archs is empty; name the GPUs to compile for, such as ["sm_80"]'),
        (["sm_81"], '//pkg:m: cuda_archs: unknown architecture "sm_81"'),
        (["ampere"], "known are sm_75, sm_80, sm_86, sm_89, sm_90, sm_100, sm_120"),
    ],
)
def test_wrong_archs(names: list[str], message: str) -> None:
    with pytest.raises(DriverError) as error:
        archs.find(names, "//pkg:m")
    assert message in str(error.value)


def test_the_file_and_its_table() -> None:
    ptx = Image(80, True, b".version 8.7", 0, 64)
    first = Kernel("add", (Image(80, False, b"x" * 17, 1024, 128), ptx))
    second = Kernel("look_up", (Image(80, False, b"y", 0, 32), ptx), reports_indices=True)
    data, text = images.write([first, second], "pkg_m")
    lines = [line.strip() for line in text.splitlines()]
    assert "{80, false, 0, 17, 1024, 128}," in lines
    # Each begins at a multiple of 16; PTX ends with a zero, and equal texts are stored once.
    assert lines.count("{80, true, 32, 13, 0, 64},") == 2
    assert data[32:45] == b".version 8.7\0"
    assert "{80, false, 48, 1, 0, 32}," in lines
    assert len(data) == 49
    assert '{"add", kImages0, 2},' in lines
    assert "kKernelTable = {aoti_cuda_images_pkg_m, kKernels, 2, true};" in text
    assert images.write([first], "pkg_m")[1].endswith("kKernels, 1, false};\n}  // namespace\n")


def test_a_program_without_kernels() -> None:
    data, text = images.write([], "pkg_m")
    assert data == bytes(16)
    assert "kKernelTable = {aoti_cuda_images_pkg_m, kKernels, 0, false};" in text
