"""The choice of tiles by sizes, dtype and architectures."""

from __future__ import annotations

import dataclasses

import pytest
from aoti_driver.contract.tiles import Tile
from aoti_driver.cuda import tile_table, tiles
from aoti_driver.cuda.archs import ARCHS
from aoti_driver.cuda.tiles import Product, Sizes, exactly

A100 = (ARCHS["sm_80"],)
WORDS = {1: "int8", 2: "bfloat16", 4: "float32", 8: "float64"}


def product(m: Sizes | int, n: int, k: int, element_bytes: int = 2, batch: int = 1) -> Product:
    rows = exactly(m) if isinstance(m, int) else m
    dtype = WORDS[element_bytes]
    return Product("mm", rows, exactly(n), exactly(k), dtype, element_bytes, exactly(batch))


def chosen(m: int, n: int, k: int, element_bytes: int = 2, batch: int = 1) -> Tile:
    (tile,) = tiles.of_table(product(m, n, k, element_bytes, batch), A100)
    return tile


def test_larger_products_take_larger_tiles() -> None:
    areas = [tile.m * tile.n for tile in (chosen(m, 4096, 4096) for m in (1, 64, 8192))]
    assert areas == sorted(set(areas))
    assert chosen(8192, 8192, 4096) == Tile(128, 128, 64, 4, 8)
    assert chosen(8192, 8192, 4096, element_bytes=4) == Tile(64, 64, 32, 3, 4)


def test_a_tile_is_no_larger_than_the_product() -> None:
    assert chosen(8, 20, 24) == Tile(16, 32, 32, 4, 2)
    assert chosen(8192, 8, 4096).n == 16
    assert chosen(8192, 8192, 8).k == 16
    assert chosen(8192, 8192, 8, element_bytes=1).k == 32


def test_few_results_are_divided_into_more_blocks() -> None:
    """And a batch has blocks enough."""
    assert chosen(512, 512, 4096).m < chosen(512, 512, 4096, batch=64).m


@pytest.mark.parametrize("element_bytes", WORDS)
@pytest.mark.parametrize("name", ARCHS)
def test_every_tile_fits(name: str, element_bytes: int) -> None:
    """Into the shared memory of the architecture, and of another one that shares the kernels."""
    for archs in ((ARCHS[name],), (ARCHS[name], ARCHS["sm_120"])):
        shared = min(arch.shared_bytes for arch in archs)
        anything = product(Sizes(1, None), 1 << 14, 1 << 14, element_bytes)
        for tile in (*tiles.of_table(anything, archs), *tiles.candidates(anything, archs)):
            assert tile.shared_bytes(element_bytes) <= shared
            assert min(tile.m, tile.n) >= 16
            assert tile.k >= tile_table.smallest_k(element_bytes)


def test_rows_that_vary() -> None:
    """A kernel for each class of rows that the range meets; equal ones are one."""

    def bounds(smallest: int, largest: int | None) -> list[int | None]:
        found = tiles.of_table(product(Sizes(smallest, largest), 4096, 4096), A100)
        return [tile.rows for tile in found]

    assert bounds(1, 4096) == [16, 128, None]
    assert bounds(1, None) == [16, 128, None]
    assert bounds(1, 128) == [16, None]
    assert bounds(1, 16) == [None]
    assert bounds(17, 4096) == [128, None]
    assert bounds(129, 4096) == [None]
    few, many = tiles.of_table(product(Sizes(1, 4096), 4096, 4096, element_bytes=8), A100)
    assert (few.m, few.rows, many.m, many.rows) == (16, 16, 32, None)


def test_keys() -> None:
    assert product(Sizes(1, 64), 16, 8).key == "mm [1..64, 16, 8] bfloat16"
    assert product(Sizes(2, None), 16, 8, 4, batch=3).key == "mm 3 x [2.., 16, 8] float32"


def test_candidates_differ() -> None:
    found = tiles.candidates(product(Sizes(1, 64), 32, 64), A100)
    assert len(found) == len(set(found))
    assert {(tile.m, tile.n) for tile in found} >= {(16, 32), (32, 32), (64, 32)}
    assert all(tile.rows is None and tile.m <= 64 and tile.n <= 32 for tile in found)


def test_a_piece_of_a_convolution_is_of_one_tap() -> None:
    whole = dataclasses.replace(product(1 << 16, 64, 9 * 16), taps=1)
    (one,) = tiles.of_table(whole, A100)
    (tap,) = tiles.of_table(dataclasses.replace(whole, taps=9), A100)
    assert (one.k, tap.k) == (64, 16)


def test_without_matrix_units() -> None:
    plain = dataclasses.replace(product(1 << 16, 64, 64, element_bytes=8), units=False)
    assert tiles.of_table(plain, A100) == (tile_table.WITHOUT_UNITS,)
    assert tiles.candidates(plain, A100) == (tile_table.WITHOUT_UNITS,)
