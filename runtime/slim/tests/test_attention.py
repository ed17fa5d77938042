"""scaled_dot_product_attention against PyTorch, on every level of kernels that this CPU has."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from aoti_driver.inductor import attention_calls
from harness import OpError, assert_equal, load
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import functional

slim = load()
NAME = "aoti_torch_cpu__scaled_dot_product_flash_attention_for_cpu"
TOLERANCE = {
    torch.float32: (2e-6, 1e-5),
    torch.float64: (1e-12, 1e-12),
    torch.bfloat16: (8e-3, 1e-2),
    torch.float16: (1e-3, 2e-3),
}
INFINITY = math.inf


def levels() -> list[int]:
    """The levels of cpu/cpu.h that this CPU supports, by number."""
    capability = torch.backends.cpu.get_cpu_capability()
    return {"AVX512": [0, 1, 2], "AVX2": [0, 1], "DEFAULT": [0]}.get(capability, [3])


# The last level once more, without the instructions for bfloat16.
LEVELS = [*((level, True) for level in levels()), (levels()[-1], False)]


@pytest.fixture(params=LEVELS, autouse=True)
def level(request: pytest.FixtureRequest) -> Iterator[None]:
    level, bfloat16 = request.param
    slim.library.aoti_slim_set_cpu_level(level)
    slim.library.aoti_slim_allow_bfloat16(int(bfloat16))
    yield
    slim.library.aoti_slim_set_cpu_level(levels()[-1])
    slim.library.aoti_slim_allow_bfloat16(-1)


def attend(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Tensor | None = None,
    causal: bool = False,
    scale: float | None = None,
) -> tuple[Tensor, Tensor]:
    output, logsumexp = slim.call(NAME, q, k, v, 0.0, int(causal), mask, scale)
    return output, logsumexp


def by_definition(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Tensor | None = None,
    causal: bool = False,
    scale: float | None = None,
) -> tuple[Tensor, Tensor]:
    """Computes in float64; the results have the dtypes that PyTorch gives."""
    group = q.shape[1] // k.shape[1]
    k, v = (x.double().repeat_interleave(group, 1) for x in (k, v))
    scores = q.double() @ k.transpose(2, 3)
    scores = scores * (1 / math.sqrt(q.shape[3]) if scale is None else scale)
    if mask is not None:
        scores = scores + mask.double()
    if causal:
        hidden = torch.ones(q.shape[2], k.shape[2], dtype=torch.bool).tril().logical_not()
        scores = scores.masked_fill(hidden, -INFINITY)
    logsumexp = scores.logsumexp(3)
    logsumexp = torch.where(logsumexp == -INFINITY, 0.0, logsumexp)
    weights = (scores - logsumexp[..., None]).exp()
    wide = torch.float64 if q.dtype == torch.float64 else torch.float32
    return (weights @ v).to(q.dtype), logsumexp.to(wide)


def check(q: Tensor, k: Tensor, v: Tensor, **options: Any) -> None:
    output, logsumexp = attend(q, k, v, **options)
    expected, expected_logsumexp = by_definition(q, k, v, **options)
    atol, rtol = TOLERANCE[q.dtype]
    assert_equal(output, expected, atol=atol, rtol=rtol)
    assert_equal(logsumexp, expected_logsumexp, atol=max(atol * 1e-2, 2e-6), rtol=1e-5)


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(
    ("queries", "keys", "heads", "key_heads", "depth"),
    [
        (1, 1, 1, 1, 1),
        (1, 129, 9, 3, 64),
        (5, 7, 4, 4, 16),
        (13, 300, 2, 1, 40),
        (67, 67, 3, 3, 32),
        (257, 131, 2, 2, 80),
        (2, 1100, 6, 2, 24),
        (7, 0, 2, 2, 16),
    ],
)
def test_shapes(
    dtype: torch.dtype,
    causal: bool,
    queries: int,
    keys: int,
    heads: int,
    key_heads: int,
    depth: int,
) -> None:
    torch.manual_seed(queries + keys)
    q = torch.randn(2, heads, queries, depth).to(dtype)
    k = torch.randn(2, key_heads, keys, depth).to(dtype)
    v = torch.randn(2, key_heads, keys, depth).to(dtype)
    check(q, k, v, causal=causal)


@pytest.mark.parametrize("dtype", TOLERANCE)
def test_same_layout_as_pytorch(dtype: torch.dtype) -> None:
    base = torch.randn(2, 11, 3, 4, 16).to(dtype)
    contiguous = torch.randn(2, 4, 11, 16).to(dtype)
    for q in (
        contiguous,
        base[:, :, 0].transpose(1, 2),
        contiguous.transpose(2, 3).contiguous().transpose(2, 3),
        base[:, :, 1].transpose(1, 2)[:, :, ::2],
    ):
        expected = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(
            q.contiguous(), contiguous, contiguous
        )
        layout = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(
            q, contiguous, contiguous
        )
        actual = attend(q, contiguous, contiguous)
        for own, theirs, like in zip(actual, expected, layout, strict=True):
            assert own.stride() == like.stride()
            assert_equal(own, theirs, atol=TOLERANCE[dtype][0] * 2, rtol=TOLERANCE[dtype][1])


@pytest.mark.parametrize("queries", [5, 29])
def test_keys_beyond_an_odd_number_do_not_count(queries: int) -> None:
    """Keys and weights of bfloat16 are multiplied in pairs."""
    torch.manual_seed(queries)
    q, k, v = (torch.randn(1, 1, 129, 16, dtype=torch.bfloat16) for _ in range(3))
    q = q[:, :, :queries]
    expected, _ = by_definition(q, k[:, :, :queries], v[:, :, :queries], causal=True)
    k[:, :, queries:], v[:, :, queries:] = 1e30, 1e30
    mask = torch.zeros(queries, 129)
    mask[:, queries:] = -INFINITY
    for options in ({"mask": mask, "causal": True}, {"causal": True}):
        output, _ = attend(q, k, v, **options)
        assert_equal(output, expected, atol=TOLERANCE[q.dtype][0], rtol=TOLERANCE[q.dtype][1])


@settings(max_examples=25)
@given(data=st.data())
def test_any_strides_and_masks(data: st.DataObject) -> None:
    draw = data.draw
    torch.manual_seed(draw(st.integers(0, 1000)))
    dtype = draw(st.sampled_from(list(TOLERANCE)))
    batch, key_heads, group = (draw(st.integers(1, 3)) for _ in range(3))
    queries, keys = draw(st.integers(1, 40)), draw(st.integers(1, 200))
    depth = draw(st.sampled_from([1, 3, 8, 16, 33, 64]))

    def strided(heads: int, positions: int, size: int) -> Tensor:
        order = draw(st.permutations(range(4)))
        sizes = [batch, heads, positions, size]
        step = draw(st.integers(1, 2))
        stored = [0] * 4
        for place, dim in enumerate(order):
            stored[place] = sizes[dim] * (step if place == 3 else 1)
        tensor = torch.randn(stored).to(dtype)[..., ::step]
        tensor = tensor.permute([order.index(dim) for dim in range(4)])
        return tensor[:, :, :1].expand(sizes) if draw(st.booleans()) else tensor

    q = strided(key_heads * group, queries, depth)
    k = strided(key_heads, keys, depth)
    v = strided(key_heads, keys, depth)
    mask = None
    if draw(st.booleans()):
        sizes = [batch, key_heads * group, queries, keys]
        sizes = [size if draw(st.booleans()) else 1 for size in sizes]
        sizes = sizes if draw(st.booleans()) else sizes[2:]
        mask = torch.randn(sizes).masked_fill(torch.rand(sizes) < 0.3, -INFINITY)
        if draw(st.booleans()):
            mask = mask.to(dtype)
        if draw(st.booleans()):
            mask = mask.transpose(-1, -2).contiguous().transpose(-1, -2)
    scale = draw(st.sampled_from([None, 0.5, 0.0]))
    check(q, k, v, mask=mask, scale=scale, causal=draw(st.booleans()))


def test_agrees_with_pytorch_on_grouped_heads() -> None:
    q, k, v = torch.randn(2, 6, 9, 16), torch.randn(2, 2, 12, 16), torch.randn(2, 2, 12, 16)
    expected = functional.scaled_dot_product_attention(q, k, v, enable_gqa=True)
    assert_equal(attend(q, k, v)[0], expected)


def test_depth_of_values_may_differ() -> None:
    q, k, v = torch.randn(2, 4, 9, 16), torch.randn(2, 4, 12, 16), torch.randn(2, 4, 12, 7)
    assert_equal(attend(q, k, v)[0], functional.scaled_dot_product_attention(q, k, v))


def test_rows_that_see_nothing_are_zero() -> None:
    q, k, v = (torch.randn(1, 2, 9, 16) for _ in range(3))
    mask = torch.zeros(9, 9)
    mask[3] = -INFINITY
    expected = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(q, k, v, attn_mask=mask)
    output, logsumexp = attend(q, k, v, mask)
    assert output[:, :, 3].eq(0).all()
    assert_equal(output, expected[0])
    assert_equal(logsumexp, expected[1])


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("queries", [1, 9, 40])
def test_rows_whose_keys_all_have_the_same_mask(dtype: torch.dtype, queries: int) -> None:
    """Programs add this number in place of fills such as -1e9: nothing is left of a score."""
    q, k, v = (torch.randn(1, 2, size, 16).to(dtype) for size in (queries, 300, 300))
    mask = torch.zeros(queries, 300, dtype=dtype)
    mask[0] = attention_calls.FILL
    output, _ = attend(q, k, v, mask)
    if queries > 1:
        check(q[:, :, 1:], k, v, mask=mask[1:])
    expected = v.double().mean(2).to(dtype)
    assert_equal(output[:, :, 0], expected, atol=TOLERANCE[dtype][0], rtol=1e-5)


@pytest.mark.parametrize("special", [math.nan, INFINITY])
@pytest.mark.parametrize("queries", [1, 9])
def test_nan_and_infinity(special: float, queries: int) -> None:
    q, k, v = (torch.randn(1, 2, size, 16) for size in (queries, 150, 150))
    for place in range(3):
        changed = [q.clone(), k.clone(), v.clone()]
        changed[place][0, 1, 0, 5] = special
        expected = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(*changed)
        assert_equal(attend(changed[0], changed[1], changed[2])[0], expected[0])
    mask = torch.zeros(queries, 150)
    mask[0, 140] = special
    expected = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(q, k, v, attn_mask=mask)
    assert_equal(attend(q, k, v, mask)[0], expected[0])


@pytest.mark.parametrize("queries", [1, 3, 20])
def test_end_of_a_cache_is_not_read(queries: int) -> None:
    filled, size = 70, 2048
    cache = torch.full((2, 1, size, 3, 64), math.nan)
    cache[:, :, :128] = torch.randn(2, 1, 128, 3, 64)
    k, v = (side.transpose(1, 2) for side in cache)
    q = torch.randn(1, 9, queries, 64)
    mask = torch.full((queries, size), -INFINITY)
    mask[:, :filled] = 0
    expected = by_definition(q, k[:, :, :filled], v[:, :, :filled])
    assert_equal(attend(q, k, v, mask)[0], expected[0], atol=2e-6, rtol=1e-5)


@settings(max_examples=40)
@given(data=st.data())
def test_few_rows_over_a_cache(data: st.DataObject) -> None:
    """Heads that lie side by side are read together, also where they see different keys."""
    draw = data.draw
    torch.manual_seed(draw(st.integers(0, 1000)))
    batch, key_heads = draw(st.integers(1, 2)), draw(st.integers(1, 5))
    group, queries = draw(st.sampled_from([(1, 1), (2, 1), (3, 1), (4, 1), (1, 3), (2, 2)]))
    keys = draw(st.sampled_from([1, 2, 5, 63, 64, 65, 127, 128, 129, 600, 2100]))
    depth, value_depth = draw(st.sampled_from([(16, 16), (64, 64), (80, 48), (32, 128), (40, 64)]))
    q = torch.randn(batch, key_heads * group, queries, depth)
    k = torch.randn(batch, keys, key_heads, depth).transpose(1, 2)
    v = torch.randn(batch, keys, key_heads, value_depth).transpose(1, 2)
    mask = None
    if draw(st.booleans()):
        mask = torch.randn(batch, key_heads * group, queries, keys)
        lengths = torch.randint(0, keys + 1, mask.shape[:-1])
        mask[torch.arange(keys) >= lengths[..., None]] = -INFINITY
    check(q, k, v, mask=mask, causal=draw(st.booleans()))


def test_what_one_head_does_not_see_does_not_reach_it() -> None:
    cache = torch.randn(2, 1, 200, 3, 64)
    mask = torch.zeros(1, 9, 1, 200)
    seen = [150, 0, 67]
    for head, keys in enumerate(seen):
        mask[:, head * 3 : head * 3 + 3, :, keys:] = -INFINITY
        cache[:, :, keys:, head] = math.nan
    q, (k, v) = torch.randn(1, 9, 1, 64), (side.transpose(1, 2) for side in cache)
    output, _ = attend(q, k, v, mask)
    for head, keys in enumerate(seen):
        heads = slice(head * 3, head * 3 + 3)
        expected, _ = by_definition(
            q[:, heads], k[:, head : head + 1, :keys], v[:, head : head + 1, :keys]
        )
        assert_equal(output[:, heads], expected, atol=2e-6, rtol=1e-5)


def test_number_of_threads_does_not_change_a_decoded_token() -> None:
    q = torch.randn(1, 9, 1, 64)
    k, v = (torch.randn(1, 700, 3, 64).transpose(1, 2) for _ in range(2))
    slim.library.aoti_slim_test_set_threads(1)
    one = attend(q, k, v)
    slim.library.aoti_slim_test_set_threads(3)
    several = attend(q, k, v)
    slim.library.aoti_slim_test_set_threads(1)
    for a, b in zip(one, several, strict=True):
        assert torch.equal(a, b)


def test_large_scores_do_not_overflow() -> None:
    q, k, v = (torch.randn(1, 1, 40, 16) * 100 for _ in range(3))
    check(q, k, v, scale=10.0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"q": torch.ones(2, 3, 4)}, "must have 4 dims"),
        ({"k": torch.ones(1, 2, 4, 6)}, "do not match"),
        ({"v": torch.ones(1, 2, 3, 8)}, "do not match"),
        ({"k": torch.ones(2, 2, 4, 8)}, "do not match"),
        ({"q": torch.ones(1, 3, 4, 8)}, "not a multiple"),
        ({"k": torch.ones(1, 2, 4, 8).double()}, "same dtype"),
        ({"mask": torch.ones(4, 4, dtype=torch.bool)}, "mask is bool, must be float32"),
        ({"mask": torch.ones(4)}, "must have 2 or 4 dims"),
        ({"mask": torch.ones(3, 4)}, "must be 1 or 4"),
        ({"mask": torch.ones(2, 1, 4, 4)}, "dim 0 must be 1 or 1"),
    ],
)
def test_errors(arguments: dict[str, Tensor], message: str) -> None:
    good: dict[str, Tensor | None] = {name: torch.ones(1, 2, 4, 8) for name in "qkv"}
    good |= {"mask": None, **arguments}
    with pytest.raises(OpError, match=message):
        slim.call(NAME, good["q"], good["k"], good["v"], 0.0, 0, good["mask"], None)


def test_dropout_is_refused() -> None:
    with pytest.raises(OpError, match=r"dropout is 0\.5"):
        slim.call(NAME, *[torch.ones(1, 1, 2, 8)] * 3, 0.5, 0, None, None)
