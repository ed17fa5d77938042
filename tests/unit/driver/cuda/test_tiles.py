"""The choice of a tile by sizes, dtype and architectures."""

from __future__ import annotations

from aoti_driver.cuda import archs, tiles
from aoti_driver.cuda.tiles import Product, Tile

SMALL = Tile(16, 32, 16, 3, 2)
MIDDLE = Tile(64, 64, 32, 3, 4)
LARGE = Tile(128, 128, 64, 4, 8)
DEEP = Tile(128, 256, 128, 4, 8)  # 288 KiB of shared memory for bfloat16
ALL = (SMALL, MIDDLE, LARGE, DEEP)

A100 = (archs.ARCHS["sm_80"],)


def chosen(m: int, n: int, k: int, element_bytes: int = 2) -> Tile:
    number = tiles.choose(ALL, Product(m, n, k, element_bytes), A100)
    assert number is not None
    return ALL[number]


def test_larger_products_take_larger_tiles() -> None:
    assert chosen(8, 128, 64) == SMALL
    assert chosen(8192, 8192, 4096) == LARGE
    areas = [chosen(size, 1024, 1024).m for size in (1, 64, 512, 8192)]
    assert areas == sorted(areas)


def test_a_batch_counts_as_more_blocks() -> None:
    one = tiles.choose(ALL, Product(128, 128, 64, 2), A100)
    many = tiles.choose(ALL, Product(128, 128, 64, 2, batch=4096), A100)
    assert one is not None
    assert many is not None
    assert ALL[one].m < ALL[many].m


def test_tiles_that_do_not_fit_into_shared_memory() -> None:
    assert LARGE.shared_bytes(4) == 196_608
    product = Product(8192, 8192, 4096, 4)
    assert tiles.choose([LARGE], product, A100) is None
    assert tiles.choose([LARGE], product, (archs.ARCHS["sm_90"],)) == 0
    # The same kernel runs on all architectures.
    both = (archs.ARCHS["sm_80"], archs.ARCHS["sm_86"])
    assert tiles.choose([LARGE], Product(8192, 8192, 4096, 2), A100) == 0
    assert tiles.choose([LARGE, LARGE], Product(8192, 8192, 4096, 2), both) == 0
    assert tiles.choose([Tile(128, 128, 128, 3, 8)], Product(8192, 8192, 4096, 2), both) is None


def test_the_first_of_equal_tiles() -> None:
    assert tiles.choose([MIDDLE, MIDDLE], Product(64, 64, 64, 2), A100) == 0
