"""Dispatch by dtype, rank, size and value, against eager PyTorch, and the state of all variants."""

import pytest
import torch
from torch.utils.dlpack import from_dlpack

from tests.variants import scaler  # type: ignore[attr-defined]  # generated
from tests.variants.scaler_py import Scaler

MODEL = scaler.load()


@pytest.mark.parametrize(
    "shape, dtype, variant",
    [
        ((4,), torch.float32, "vector"),
        ((1, 4), torch.float32, "one"),
        ((2, 4), torch.float32, "even"),
        ((64, 4), torch.float32, "even"),
        ((3, 4), torch.float32, "wide"),
        ((1, 4), torch.bfloat16, "half"),
        ((64, 4), torch.bfloat16, "half"),
    ],
)
@pytest.mark.parametrize("factor", [None, 0.0, 1, 3.5])
def test_against_eager(
    shape: tuple[int, ...], dtype: torch.dtype, variant: str, factor: float | None
) -> None:
    torch.manual_seed(0)
    x = torch.randn(shape).to(dtype)
    more = {} if factor is None else {"factor": factor}
    assert MODEL.explain_scale(x, **more).variant == variant
    result = from_dlpack(MODEL.scale(x, **more).output)
    torch.testing.assert_close(result, Scaler().scale(x, **more))


def test_variants_share_the_state_of_a_session() -> None:
    session = MODEL.session()
    session.scale(torch.zeros(4))
    session.scale(torch.zeros(1, 4))
    session.scale(torch.zeros(5, 4, dtype=torch.bfloat16))
    assert session.count()["calls"].tolist() == [3]
    assert session.count(1) == {"calls": 3}
    minus = session.count(-1)
    assert (minus["calls"].tolist(), minus["note"]) == ([-3], "negated")
    assert MODEL.session().count()["calls"].tolist() == [0]
    assert session.explain_count(-1).variant == "sign_minus_1"


@pytest.mark.parametrize(
    "x, factor, reasons",
    [
        (torch.zeros(65, 4), 1, {"wide": "dim 0 (n) is 65, must be in 1..64"}),
        (torch.zeros(3, 5), 1, {"wide": "dim 1 is 5, must be 4"}),
        (torch.zeros(3, 4), 5, {"wide": 'input "factor": value is 5, must be in 0..4'}),
        (
            torch.zeros(3, 4, dtype=torch.float64),
            1,
            {
                "vector": "dtype is float64, must be float32",
                "half": "dtype is float64, must be bfloat16",
            },
        ),
        (
            torch.zeros(5, 4),
            1,
            {
                "vector": "rank is 2 (shape [5, 4]), must be 1 ([4])",
                "one": "dim 0 is 5, must be 1",
                "even": "dim 0 (n) is 5, must be a multiple of 2",
            },
        ),
    ],
)
def test_reasons(x: torch.Tensor, factor: float, reasons: dict[str, str]) -> None:
    refused = MODEL.explain_scale(x, factor).refused
    for variant, reason in reasons.items():
        assert reason in refused[variant]


def test_no_variant() -> None:
    with pytest.raises(scaler.InputError, match=r"scaler\.count: no variant takes the call") as e:
        MODEL.count(2)
    assert str(e.value).endswith(
        '\n  not sign_1: input "sign" is 2, must be 1'
        '\n  not sign_minus_1: input "sign" is 2, must be -1'
    )
    with pytest.raises(scaler.InputError, match='input "x" is not given'):
        MODEL.scale()


def test_signature() -> None:
    assert scaler.scale.inputs == {
        "x": "float32[4] | float32[1, 4] | float32[n, 4] | bfloat16[n, 4]",
        "factor": "float",
    }
    assert scaler.scale.outputs["output"].split(" | ")[0] == "float32[4]"
    assert scaler.scale.dims["n"] == (1, 64)
    assert list(scaler.scale.variants) == ["vector", "one", "even", "wide", "half"]
    assert scaler.count.inputs == {"sign": "1 | -1"}
