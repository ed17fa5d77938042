"""``dynamic_dims = {"seq": "auto"}``: the dims that an export finds."""

from __future__ import annotations

import pytest

from tests.unit.driver.harness import Export, fails, module


@pytest.mark.parametrize(
    ("forward", "init", "inputs", "dims", "found"),
    [
        pytest.param(
            "return x * 2",
            "pass",
            {"x": "float32[batch, seq]"},
            {"batch": "auto", "seq": "auto"},
            '{"batch": "1..1024", "seq": "1..1024"}',
            id="nothing is restricted",
        ),
        pytest.param(
            "return self.layer(x)",
            "self.layer = nn.Linear(8, 4)",
            {"x": "float32[batch, width]"},
            {"batch": "auto", "width": "auto"},
            '{"batch": "1..1024", "width": "8..8"}',
            id="one size",
        ),
        pytest.param(
            "return x + y",
            "pass",
            {"x": "float32[a, 4]", "y": "float32[b, 4]"},
            {"a": "auto", "b": "auto"},
            '{"a": "1..1024", "b": "a"}',
            id="equal",
        ),
        pytest.param(
            "return x.reshape(-1, 2, 4)",
            "pass",
            {"x": "float32[n, 4]"},
            {"n": "auto"},
            '{"n": "2*n_half", "n_half": "1..512"}',
            id="even",
        ),
        pytest.param(
            "return x[:, :-1] - y",
            "pass",
            {"x": "float32[batch, long]", "y": "float32[batch, short]"},
            {"batch": "1..8", "long": "auto", "short": "auto"},
            '{"batch": "1..8", "long": "short + 1", "short": "1..1023"}',
            id="one more",
        ),
        pytest.param(
            "return x.squeeze(0) + 1",
            "pass",
            {"x": "float32[n, 4]"},
            {"n": "auto"},
            '{"n": "2..1024"}',
            id="one is another program",
        ),
        pytest.param(
            "return x.reshape(-1, 2, 4).squeeze(0) + 1",
            "pass",
            {"x": "float32[n, 4]"},
            {"n": "auto"},
            '{"n": "2*n_half", "n_half": "2..512"}',
            id="a dim that was found is restricted",
        ),
        pytest.param(
            "return x + 1",
            "pass",
            {"x": "float32[auto, more]"},
            {"auto": "1..8", "more": "auto"},
            None,
            id="a dim of that name",
        ),
    ],
)
def test_found(
    export: Export,
    forward: str,
    init: str,
    inputs: dict[str, str],
    dims: dict[str, str],
    found: str | None,
) -> None:
    result = export(module(forward, init, ", ".join(inputs)), inputs, dims)
    assert result.code == 0, result.error
    if found is None:
        assert result.error == ""
        return
    text = (
        '//pkg:m: the dims that were found for "auto"; declare them, with the ranges that you '
        f"need:\n    dynamic_dims = {found},\n"
    )
    assert result.error.startswith(text)
    note = "  The model works for one width only: write 8 in place of width in inputs.\n"
    assert result.error.removeprefix(text) == (note if "8..8" in found else "")


def test_several_restrictions(export: Export) -> None:
    forward = "return self.layer(x).reshape(-1, 2, 4) + y"
    source = module(forward, "self.layer = nn.Linear(8, 4)", "x, y")
    inputs = {"x": "float32[n, width]", "y": "float32[m, 2, 4]"}
    result = export(source, inputs, {"n": "auto", "width": "auto", "m": "auto"})
    half = {dim.name: 5 for dim in result.manifest.dims if dim.alias is None}
    values = {i.name: [s.evaluate(half) for s in i.shape] for i in result.manifest.inputs}
    assert values == {"x": [10, 8], "y": [5, 2, 4]}
    # Two dims that torch does not relate by itself are related by a guard.
    related = len(half) == 1
    assert related != ("  Every call must satisfy 2 * n_half // 2 == m.\n" in result.error)


def test_the_program_has_the_found_dims(export: Export) -> None:
    source = module("return x + y", arguments="x, y")
    inputs = {"x": "float32[a, 4]", "y": "float32[b, 4]"}
    result = export(source, inputs, {"a": "auto", "b": "auto"})
    assert [(d.name, d.min, d.max, str(d.alias)) for d in result.manifest.dims] == [
        ("a", 1, 1024, "None"),
        ("b", 1, 1024, "a"),
    ]


def test_declared_dims_stay(export: Export) -> None:
    source = module("return self.layer(x) + y", "self.layer = nn.Linear(8, 4)", "x, y")
    inputs = {"x": "float32[n, width]", "y": "float32[m, 4]"}
    error = fails(export, source, inputs, {"n": "1..64", "width": "1..16", "m": "auto"})
    assert "Write 8 in place of width in inputs: the model works for this size only." in error


def test_what_dims_do_not_mend(export: Export) -> None:
    error = fails(export, module("return x if x.sum() > 0 else -x"), dims={"batch": "auto"})
    assert error.startswith("//pkg:m: torch.export failed: forward() branches on the values")
