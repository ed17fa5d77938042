from __future__ import annotations

import pytest
import torch
from aoti_driver.contract.dtypes import DTYPES
from aoti_driver.contract.size_expr import Name, Number
from aoti_driver.contract.specs import TensorSpec
from aoti_driver.export.samples import make_inputs, make_tensor

SHAPE = (Name("n"), Number(50))


def test_the_same_again_and_different_for_other_names_and_seeds() -> None:
    spec = TensorSpec("float32", SHAPE)
    first = make_tensor("x", spec, {"n": 4})
    assert torch.equal(first, make_tensor("x", spec, {"n": 4}))
    assert not torch.equal(first, make_tensor("y", spec, {"n": 4}))
    assert not torch.equal(first, make_tensor("x", spec, {"n": 4}, seed=1))
    together = make_inputs({"y": spec, "x": spec}, {"n": 4})
    assert torch.equal(together["x"], first)


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype(dtype: str) -> None:
    tensor = make_tensor("x", TensorSpec(dtype, SHAPE), {"n": 3})
    assert tensor.shape == (3, 50) and str(tensor.dtype) == f"torch.{dtype}"
    assert len(set(tensor.flatten().tolist())) > 1


@pytest.mark.parametrize(
    ("dtype", "low", "high"),
    [("int64", -3, 3), ("uint8", 250, 255), ("float32", -0.5, 0.25), ("bfloat16", 1.0, 1.01)],
)
def test_values_stay_in_their_range(dtype: str, low: float, high: float) -> None:
    tensor = make_tensor("x", TensorSpec(dtype, SHAPE, (low, high)), {"n": 40})
    assert low <= tensor.min().item() and tensor.max().item() <= high
    if dtype in ("int64", "uint8"):
        assert (tensor.min().item(), tensor.max().item()) == (low, high)


def test_the_widest_range() -> None:
    spec = TensorSpec("int64", SHAPE, (-(2**63), 2**63 - 1))
    assert make_tensor("x", spec, {"n": 4}).abs().max() > 2**60
