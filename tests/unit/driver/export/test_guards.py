"""Models for which torch.export guards against sizes that their dims' ranges allow."""

from __future__ import annotations

import pytest
import torch
from aoti_driver.contract import conditions

from tests.unit.driver.harness import Export, Result

# Heads lie before positions, so that the part in use is contiguous for total = 64 alone.
CACHED = """
    import torch

    class Attention(torch.nn.Module):
        def forward(self, q, mask, cache):
            total = mask.shape[1]
            k, v = cache[0, :, :total], cache[1, :, :total]
            return ATTEND

    build = Attention
"""
FUSED = "torch.nn.functional.scaled_dot_product_attention(q, k[None], v[None], attn_mask=mask)"
# Refused for total = 1 too, unless torch.export is told that there is no such size.
PRODUCT = "torch.softmax(q @ k[None].transpose(-1, -2) + mask, -1)"
INPUTS = {
    "q": "float32[1, 3, seq, 8]",
    "mask": "float32[seq, total]",
    "cache": "float32[2, 3, 64, 8]",
}
DIMS = {"seq": "1..64", "total": "1..64"}


def cached(export: Export, attend: str) -> Result:
    result: Result = export(CACHED.replace("ATTEND", attend), INPUTS, DIMS)
    return result


@pytest.mark.parametrize("attend", [FUSED, PRODUCT])
@pytest.mark.parametrize("total", [1, 2, 63, 64])
def test_a_part_of_a_cache(export: Export, attend: str, total: int) -> None:
    result = cached(export, attend)
    assert [(d.name, d.min, d.max) for d in result.manifest.dims] == [
        ("seq", 1, 64),
        ("total", 1, 64),
    ]
    program = result.program()
    assert {(r.lower, r.upper) for r in program.range_constraints.values()} == {(1, 64)}
    for seq in (1, 2, 64):
        q, mask, cache = (
            torch.randn(1, 3, seq, 8), torch.randn(seq, total), torch.randn(2, 3, 64, 8)
        )  # fmt: skip
        k, v = cache[:, :, :total]
        expected = eval(attend, {"torch": torch, "q": q, "mask": mask, "k": k, "v": v})
        actual = program.module(check_guards=False)(q, mask, cache)
        torch.testing.assert_close(torch.utils._pytree.tree_leaves(actual)[0], expected)


@pytest.mark.parametrize(
    "attend",
    [
        "k.contiguous() * q[0, 0, 0, 0]",  # torch 2.13 decides by total = 64 in any case
        "k * (2.0 if total == 64 else 1.0) * q[0, 0, 0, 0]",
    ],
)
def test_what_stays_guarded_is_the_first_error(export: Export, attend: str) -> None:
    result = cached(export, attend)
    assert result.code == 1
    assert result.error.startswith(
        "//pkg:m: the model does not work for every size that dynamic_dims declares\n"
    )
    assert "  - Not all values of total" in result.error
    assert "!= 512" in result.error or "!= 64" in result.error
    assert "!= 1." not in result.error  # what later attempts say


@pytest.mark.parametrize(("line", "code"), [("x + n", 0), ("x.squeeze(0).sum(0) + n", 1)])
def test_small_sizes_with_constant_arguments(export: Export, line: str, code: int) -> None:
    result = export(
        f"""
        import torch

        class M(torch.nn.Module):
            def forward(self, nothing, x, n, *, more, last=None):
                return ({line}) * more["y"], None, more["flag"]

        def sample():
            y = {{"flag": True, "y": torch.ones(4)}}
            return (None, torch.randn(3, 4), 2), {{"last": None, "more": y}}

        build = M
        """,
        {"x": "float32[batch, 4]"},
        {"batch": "1..8"},
        sample_inputs="pkg.m:sample",
    )
    assert result.code == code
    if code == 0:
        assert [i.name for i in result.manifest.inputs] == ["x", "more_y"]
    else:
        assert "the exported program is wrong for batch = 1" in result.error


def test_contiguous_where_a_size_is_1(export: Export) -> None:
    """For one row, reshape() copies nothing: what comes before contiguous() is transposed."""
    source = """
        import torch

        class M(torch.nn.Module):
            def forward(self, x):
                rows = x.transpose(1, 2).reshape(-1, 6)[..., None] * torch.ones(3)
                return rows.contiguous().view(rows.size(0), -1) + 1

        build = M
        """
    result = export(source, {"x": "float32[batch, 6, 4]"}, {"batch": "1..8"})
    program = result.program().module(check_guards=False)
    for batch in (1, 3):
        x = torch.rand(batch, 6, 4)
        (actual,) = torch.utils._pytree.tree_leaves(program(x))
        expected = x.transpose(1, 2).reshape(-1, 6).repeat_interleave(3, 1) + 1
        torch.testing.assert_close(actual, expected)


def test_relations_of_dims_are_kept(export: Export) -> None:
    """torch.export says nothing of a relation of several dims; calls are checked for it."""
    result = export(
        """
        import torch

        class M(torch.nn.Module):
            def forward(self, x, past, mask):
                k = torch.cat([past, x], 1)
                return k + mask[:, :k.shape[1]]

        build = M
        """,
        {"x": "float32[2, seq]", "past": "float32[2, past]", "mask": "float32[2, total]"},
        {"seq": "1..16", "past": "1..64", "total": "4..80"},
    )
    (guard,) = result.manifest.guards
    for past, total, right in ((3, 5, True), (3, 6, True), (4, 5, False), (64, 80, True)):
        assert conditions.holds(guard, {"seq": 2, "past": past, "total": total}) is right
    # Also where torch would rather say that the sizes are never equal.
    program = result.program().module(check_guards=False)
    x, cache, mask = torch.randn(2, 2), torch.randn(2, 3), torch.randn(2, 5)
    actual = torch.utils._pytree.tree_leaves(program(x, cache, mask))[0]
    torch.testing.assert_close(actual, torch.cat([cache, x], 1) + mask)


@pytest.mark.parametrize("high", ["64", "1000000"])
@pytest.mark.parametrize(
    "line", ["k.view(-1, 8).view(b, -1, 8)", "k.view(-1, 8).unflatten(0, (b, p))"]
)
def test_guards_that_always_hold(export: Export, line: str, high: str) -> None:
    result = export(
        f"""
        import torch

        class M(torch.nn.Module):
            def forward(self, x, past):
                k = torch.cat([past, x], 1)
                b, p = k.shape[:2]
                return {line} + 1

        build = M
        """,
        {"x": "float32[batch, 1, 8]", "past": "float32[batch, past, 8]"},
        {"batch": "1..8", "past": f"1..{high}"},
    )
    assert result.manifest.guards == ()
    assert [str(s) for s in result.manifest.outputs[0].shape] == ["batch", "past + 1", "8"]
