"""Members that are objects of custom classes: what is refused."""

from __future__ import annotations

import os

import pytest
import torch
from aoti_driver.program import operators

from tests.unit.driver.harness import BATCH, Export, X, codegen, fails, module

# What Bazel builds of tests/custom_classes/classes.cc.
LIBRARY = os.environ.get("CLASSES")
pytestmark = pytest.mark.skipif(LIBRARY is None, reason="Bazel builds the classes")

_COUNTED = "self.counted = torch.classes.tested_classes.Counted(7)"
_FAKE = """
@torch._library.register_fake_class("tested_classes::Counted")
class FakeCounted:
    def __init__(self, first):
        self.first = first
    @classmethod
    def __obj_unflatten__(cls, state):
        return cls(**dict(state))
    def alive(self, x):
        return torch.empty_like(x, dtype=torch.int64)
"""
_MODEL = module("return self.counted.alive(x)", _COUNTED)


@pytest.fixture(scope="module", autouse=True)
def classes() -> None:
    operators.load([f"//tests/custom_classes:classes={LIBRARY}"])


@pytest.fixture(autouse=True)
def no_fake_classes() -> None:
    from torch._library.fake_class_registry import global_fake_class_registry

    global_fake_class_registry.clear()


def test_an_object_is_a_constant(export: Export) -> None:
    result = export(_MODEL + _FAKE, X, BATCH)
    assert [c.name for c in result.manifest.constants] == ["counted"]
    x = torch.randn(3, 4)
    assert result.program().module()(x).tolist() == [[7] * 4] * 3
    code = codegen(result)
    assert '"tested_classes::Counted", "counted", (*constants)[0]' in code


def test_no_fake_class(export: Export) -> None:
    error = fails(export, _MODEL)
    assert error.startswith(
        "//pkg:m: self.counted: the class tested_classes::Counted has no fake class, which says "
        "what its methods return. Register one with @torch._library.register_fake_class("
        '"tested_classes::Counted") in a file of python of the torch_custom_ops target: '
    )


def test_a_fake_class_without_a_method(export: Export) -> None:
    error = fails(export, _MODEL + _FAKE.replace("def alive", "def alife"))
    assert error.startswith(
        "//pkg:m: self.counted: the fake class FakeCounted of tested_classes::Counted has no alive"
    )


def test_strict(export: Export) -> None:
    error = fails(export, _MODEL + _FAKE, strict=True)
    assert error.startswith(
        "//pkg:m: strict = True: self.counted is an object of the class tested_classes::Counted, "
        f"and torch {torch.__version__} can trace methods of objects only with strict = False"
    )


def test_a_method_that_the_class_does_not_have(export: Export) -> None:
    error = fails(export, _MODEL.replace("alive(x)", "dead(x)") + _FAKE)
    assert "pkg/m.py:8 in forward\n    return self.counted.dead(x)\n" in error
    assert "tested_classes.Counted" in error
    assert "does not have a field with name 'dead'" in error


def test_a_class_that_no_library_has(export: Export) -> None:
    error = fails(export, _MODEL.replace("Counted(7)", "Absent(7)") + _FAKE)
    assert "torch.classes.tested_classes.Absent is in no library that custom_ops names" in error


def test_a_class_on_tensors_of_libtorch(export: Export) -> None:
    weight = "torch.quantize_per_tensor(torch.ones(2, 4), 1.0, 0, torch.qint8)"
    init = f"self.packed = torch.ops.quantized.linear_prepack({weight}, None)"
    error = fails(export, module("return x + 1", init))
    assert error.startswith(
        "//pkg:m: self.packed is an object of the class quantized::LinearPackedParamsBase, which "
        "is not declared with AOTI_CUSTOM_CLASS: compiled code can't have it."
    )


def test_constructor_arguments(export: Export) -> None:
    error = fails(export, _MODEL.replace("Counted(7)", "Counted('7')") + _FAKE)
    assert "Expected a value of type 'int' for argument 'first' but instead found type 'str'" in (
        error
    )
