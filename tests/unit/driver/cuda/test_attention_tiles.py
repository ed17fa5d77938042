"""The tile of attention, from sizes and architectures."""

from __future__ import annotations

import itertools

import pytest
from aoti_driver.cuda.archs import ARCHS, Arch
from aoti_driver.cuda.attention_tiles import choose

NEW = [arch for arch in ARCHS.values() if arch.capability >= 80]


def test_none_for_turing() -> None:
    assert choose((64, 64), 64, 64, 2, [ARCHS["sm_75"], ARCHS["sm_80"]]) is None


@pytest.mark.parametrize("element_bytes", [2, 4])
def test_a_tile_for_every_width_and_architecture(element_bytes: int) -> None:
    for width, arch in itertools.product((1, 16, 64, 80, 128, 256), NEW):
        tile = choose((1, 4096), width, width, element_bytes, [arch])
        assert tile is not None
        assert tile.shared_bytes(width, width, element_bytes) <= arch.shared_bytes


def test_the_smallest_shared_memory_counts() -> None:
    large, small = ARCHS["sm_80"], ARCHS["sm_86"]
    chosen = [choose((128, 128), 128, 128, 2, archs) for archs in ([small, large], [small])]
    assert chosen[0] == chosen[1] != choose((128, 128), 128, 128, 2, [large])
    assert choose((1, 1), 128, 128, 2, [Arch("sm_80", 108, 1024, 2048)]) is None


@pytest.mark.parametrize(("most", "rows"), [(1, 16), (16, 16), (17, 32), (64, 64), (4096, 64)])
def test_few_rows_are_a_small_tile(most: int, rows: int) -> None:
    tile = choose((1, most), 64, 64, 2, [ARCHS["sm_80"]])
    assert tile is not None
    assert tile.rows == rows


def test_many_rows_are_a_large_tile() -> None:
    tile = choose((128, 4096), 64, 64, 2, [ARCHS["sm_80"]])
    assert tile is not None
    assert tile.rows == 128
