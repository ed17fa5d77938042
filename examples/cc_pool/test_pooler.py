"""The compiled pooler against eager PyTorch, for every combination of its arguments."""

import itertools

import numpy as np
import pytest
import torch
from torch.utils.dlpack import from_dlpack

from examples.cc_pool import pooler  # type: ignore[attr-defined]  # generated
from examples.cc_pool.model import Pooler

EAGER = Pooler().eval()
MODEL = pooler.load()


@pytest.fixture(autouse=True, scope="module")
def _same_weights() -> None:
    """The build made the weights that a seed of 0 gives."""
    tokens = np.arange(1000, dtype=np.int64).reshape(20, 50)
    for row in tokens:
        rows = MODEL(row[:, None]).output
        with torch.no_grad():
            EAGER.table.weight[row] = torch.from_numpy(np.array(rows))


@pytest.mark.parametrize(
    "mode, masked, sizes",
    [*itertools.product(["mean", "max"], [False, True], [(1, 1), (3, 5)])],
)
def test_against_eager(mode: str, masked: bool, sizes: tuple[int, int]) -> None:
    torch.manual_seed(1)
    tokens = torch.randint(0, 1000, sizes)
    mask = torch.rand(sizes) < 0.6 if masked else None
    if mask is not None:
        mask[:, 0] = True
    expected = EAGER(tokens, mask, mode).detach()
    torch.testing.assert_close(from_dlpack(MODEL(tokens, mask, mode).output), expected)
    named = MODEL.forward(mode=mode, mask=mask, tokens=tokens).output
    torch.testing.assert_close(from_dlpack(named), expected)


def test_defaults_are_those_of_forward() -> None:
    tokens = torch.tensor([[1, 2, 3]])
    np.testing.assert_array_equal(MODEL(tokens).output, MODEL(tokens, None, "mean").output)


def test_explain() -> None:
    tokens = torch.tensor([[1, 2, 3]])
    found = MODEL.explain(tokens, mode="max")
    assert found == pooler.Explanation(
        "mask_none_mode_max",
        {
            "mask_mode_mean": 'input "mask" is None, must be bool[batch, seq]',
            "mask_mode_max": 'input "mask" is None, must be bool[batch, seq]',
            "mask_none_mode_mean": 'input "mode" is "max", must be "mean"',
        },
    )
    assert MODEL.explain(tokens, mode="median").variant is None


def test_no_variant() -> None:
    with pytest.raises(pooler.InputError, match="pooler: no variant takes the call\n") as e:
        MODEL(torch.zeros(65, 2, dtype=torch.int64), mode="max")
    assert e.value.code == "NoVariant"
    assert str(e.value).endswith(
        'not mask_none_mode_max: input "tokens": dim 0 (batch) is 65, must be in 1..64'
    )


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"mode": 1}, "pooler: input \"mode\": got int, must be 'mean' | 'max'"),
        ({"mask": "yes"}, 'pooler: input "mask": got str, must be a NumPy array or an object with'),
        ({"masks": None}, 'pooler: there is no input "masks"; its inputs are tokens, mask, mode'),
    ],
)
def test_wrong_arguments(arguments: dict[str, object], message: str) -> None:
    with pytest.raises((pooler.InputError, TypeError)) as e:
        MODEL(torch.tensor([[1]]), **arguments)
    assert message in str(e.value)


def test_signature() -> None:
    assert pooler.inputs == {
        "tokens": "int64[batch, seq]",
        "mask": "bool[batch, seq] | None",
        "mode": "'mean' | 'max'",
    }
    assert pooler.outputs == {"output": "float32[batch, 8]"}
    assert pooler.dims == {"batch": (1, 64), "seq": (1, 128)}
    assert list(pooler.variants) == [
        "mask_mode_mean",
        "mask_mode_max",
        "mask_none_mode_mean",
        "mask_none_mode_max",
    ]
    assert pooler.variants["mask_none_mode_max"].inputs == {"tokens": "int64[batch, seq]"}
