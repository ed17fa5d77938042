"""What NAME.tune makes of measured times."""

from __future__ import annotations

from aoti_driver.contract.tiles import ProductTiles, Tile
from aoti_driver.verify import tune

SMALL, MIDDLE, LARGE = Tile(16, 64, 64, 3, 2), Tile(32, 64, 64, 3, 4), Tile(128, 64, 64, 3, 4)
LINEAR = ProductTiles("addmm [1..500, 64, 64] float16", 0, (SMALL, MIDDLE, LARGE))


def rows_of(times: tune.Times, *products: ProductTiles) -> dict[str, list[tuple[int | None, int]]]:
    """For each product, the rows of its kernels and the sides of their tiles."""
    found = tune.best(products or (LINEAR,), times)
    return {key: [(tile.rows, tile.m) for tile in tiles] for key, tiles in found.items()}


def test_the_best_of_each_class_of_rows() -> None:
    times = {(0, 1): [1.0, 2, 3], (0, 100): [9.0, 5, 6], (0, 500): [90.0, 60, 50]}
    assert rows_of(times) == {LINEAR.key: [(16, 16), (128, 32), (None, 128)]}


def test_each_number_of_rows_counts_alike() -> None:
    """The third is best for 10 rows by much, the first for one row by little."""
    assert rows_of({(0, 1): [1.0, 9, 1.1], (0, 10): [4.0, 9, 2.0]}) == {LINEAR.key: [(None, 128)]}
    assert rows_of({(0, 1): [1.0, 9, 3.0], (0, 10): [44.0, 90, 40.0]}) == {LINEAR.key: [(None, 16)]}


def test_equal_neighbours_are_one() -> None:
    times = {(0, 1): [1.0, 2, 3], (0, 100): [1.0, 5, 6], (0, 500): [9.0, 9, 5]}
    assert rows_of(times) == {LINEAR.key: [(128, 16), (None, 128)]}


def test_classes_without_times_belong_to_the_next() -> None:
    times = {(0, 17): [2.0, 1, 3], (0, 500): [9.0, 9, 5]}
    assert rows_of(times) == {LINEAR.key: [(128, 32), (None, 128)]}


def test_products_with_one_key_count_together() -> None:
    """And one that never ran keeps the table's tiles; one with fewer candidates has its own."""
    same = ProductTiles(LINEAR.key, 3, LINEAR.tiles)
    absent = ProductTiles("mm [8, 8, 8] float16", 6, (SMALL,))
    one = ProductTiles("bmm [8, 8, 8] float16", 7, (MIDDLE,))
    times = {(0, 1): [1.0, 2, 9], (3, 1): [4.0, 1, 9], (7, 8): [1.0, 0.5, 0.5]}
    assert rows_of(times, LINEAR, same, absent, one) == {
        LINEAR.key: [(None, 32)],
        one.key: [(None, 32)],
    }


def test_the_least_of_several_calls() -> None:
    device, times = tune.read_times("sm_90 NVIDIA H100 PCIe\n0 1 5.500\n3 1 2.000\n0 1 4.250\n")
    assert device == ("sm_90", "NVIDIA H100 PCIe")
    assert times == {(0, 1): 4.25, (3, 1): 2.0}
