"""Dims that vary in steps: ``"batch": "8..64 step 8"``."""

from __future__ import annotations

import pytest

from tests.unit.driver.harness import Export, fails, module

X = {"x": "float32[batch, 4]"}
EIGHTS = {"batch": "8..64 step 8"}


def test_a_model_that_needs_multiples(export: Export) -> None:
    source = module("return x.view(8, -1, 4).sum(0)")
    result = export(source, X, EIGHTS)
    assert result.code == 0, result.error
    dims = [(d.name, d.min, d.max, d.alias and str(d.alias)) for d in result.manifest.dims]
    assert dims == [("batch", 8, 64, "8*batch_steps"), ("batch_steps", 1, 8, None)]
    assert [str(s) for s in result.manifest.inputs[0].shape] == ["8*batch_steps", "4"]
    assert [str(s) for s in result.manifest.outputs[0].shape] == ["batch_steps", "4"]
    assert result.manifest.guards == ()


def test_sample_inputs_are_asked_for_the_declared_dim(export: Export) -> None:
    samples = "def samples(batch=16):\n    return (torch.zeros(batch, 4),)\n"
    source = module("return x.view(8, -1, 4).sum(0)") + samples
    result = export(source, X, EIGHTS, sample_inputs="pkg.m:samples")
    assert result.code == 0, result.error


@pytest.mark.parametrize(
    ("forward", "phrases"),
    [
        ("assert x.shape[0] != 8\nreturn x + 1", ["forward() fails for batch = 8:"]),
        (
            "return x * 2 if x.shape[0] == 8 else x",
            [
                'dynamic_dims["batch"]: the exported program is wrong for batch = 8',
                'Declare "16..64 step 8"',
            ],
        ),
        (
            "assert x.shape[0] <= 40\nreturn x + 1",
            [
                'dynamic_dims["batch"]: the model works only for 8..40 step 8, but 8..64 step 8',
                'Suggested fix: "batch": "8..40 step 8"',
            ],
        ),
        (
            "return x + torch.zeros(24, 1)",
            ["You declared batch as dynamic but your code specialized it to be a constant (24)."],
        ),
    ],
)
def test_messages_are_about_the_declared_dim(
    export: Export, forward: str, phrases: list[str]
) -> None:
    error = fails(export, module(forward), X, EIGHTS)
    assert [phrase for phrase in phrases if phrase not in error] == [], error
