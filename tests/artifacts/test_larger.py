"""A compiled model that calls a compiled operator."""

from __future__ import annotations

import importlib
from typing import Any

import pytest
import torch

from tests.artifacts import larger_source

# As `from tests.artifacts import larger`, which linters don't find in the source tree.
larger: Any = importlib.import_module("tests.artifacts.larger")
COLUMNS = torch.tensor([9, 5, 9])


@pytest.mark.parametrize("batch", [1, 3, 8])
def test_results(batch: int) -> None:
    x = torch.randn(batch, 4, dtype=torch.float64)
    with torch.no_grad():
        expected = larger_source.build()(x, COLUMNS)
    output = larger.load()(x=x.numpy(), columns=COLUMNS.numpy()).output
    torch.testing.assert_close(torch.from_numpy(output), expected)


def test_values_that_the_operator_does_not_take() -> None:
    x = torch.full((3, 4), 1e7, dtype=torch.float64)
    with pytest.raises(RuntimeError) as error:
        larger.load()(x=x.numpy(), columns=COLUMNS.numpy())
    assert str(error.value) == (
        'larger: artifacts::fused: input "columns": value at [0] is -96, must be in 0..4'
    )
