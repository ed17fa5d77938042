from __future__ import annotations

from benchmarks.profile.table import Case, Profile, render


def test_a_row_has_the_share_of_memory_and_the_milliseconds_of_each_kind() -> None:
    profile = Profile(ms=10.0, bytes=80_000_000, kinds={"products": 0.75, "waiting": 0.25})
    head, row, memory = render({Case("int8", 2, 1500): profile}, {2: 16e9}).splitlines()
    assert " ".join(head.split()) == "weights threads tokens ms of memory products waiting"
    assert " ".join(row.split()) == "int8 2 1500 10.00 50% 7.50 75% 2.50 25%"
    assert memory.endswith("16.0 GB/s with 2")
