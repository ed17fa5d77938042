"""The trial of a module before its export finds its state, and changes nothing."""

from __future__ import annotations

import re

import pytest
import torch
from aoti_driver.base.errors import DriverError
from aoti_driver.export import state

from tests.unit.driver.harness import Export, codegen

X = {"x": "float32[batch, 4]"}
BATCH = {"batch": "1..64"}
# A lock can't be copied, so neither can the module.
LOCKED = """
    import threading
    import torch

    class M(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.lock = threading.Lock()
            self.n = 1
            self.register_buffer("count", torch.zeros(1))

        def forward(self, x):
            LINE
            self.count.add_(1)
            return x * self.count

    build = M
"""
WRITES = """
    import threading
    import torch

    class M(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.w = torch.nn.Parameter(torch.ones(4))
            LINE

        def forward(self, x):
            self.w.mul_(2)
            return x + self.w

    build = M
"""


def test_a_module_that_cannot_be_copied(export: Export) -> None:
    result = export(LOCKED.replace("LINE", ""), X, BATCH)
    program = result.program()
    assert program.constants.keys() | program.state_dict.keys() == {"count"}
    assert program.state_dict["count"].item() == 0
    assert [(c.name, c.mutated) for c in result.manifest.constants] == [("count", True)]


def test_what_a_module_that_cannot_be_copied_forgets(export: Export) -> None:
    result = export(LOCKED.replace("LINE", "self.n += 1"), X, BATCH)
    assert result.code == 1
    assert "//pkg:m: forward() changes self.n from call to call." in result.error


def test_an_entry_point_that_works_once(export: Export) -> None:
    source = LOCKED.replace("LINE", "").replace(
        "    build = M",
        "    built = []\n"
        "    def build():\n"
        "        if built: raise RuntimeError\n"
        "        built.append(1)\n"
        "        return M()",
    )
    assert export(source, X, BATCH).program().state_dict["count"].item() == 0


def test_an_entry_point_that_remembers_its_module(export: Export) -> None:
    source = LOCKED.replace("LINE", "").replace(
        "    build = M", "    module = M()\n    def build():\n        return module"
    )
    assert export(source, X, BATCH).program().state_dict["count"].item() == 0


def test_modules_that_can_be_copied_are_built_once(export: Export) -> None:
    source = LOCKED.replace("LINE", "").replace("threading.Lock()", "None").replace(
        "    build = M", "    built = []\n    def build():\n        assert not built\n"
        "        built.append(1)\n        return M()",
    )  # fmt: skip
    assert export(source, X, BATCH).code == 0


@pytest.mark.parametrize("line", ["", "self.lock = threading.Lock()"])
def test_parameters_that_forward_writes_to(export: Export, line: str) -> None:
    result = export(WRITES.replace("LINE", line), X, BATCH)
    program = result.program()
    torch.testing.assert_close(program.state_dict["w"].detach(), torch.ones(4))
    assert [(c.name, c.mutated) for c in result.manifest.constants] == [("w", True)]
    # One output: what is written to is no result.
    assert re.search(r"AOTInductorModelBase\(1,\s+1,", codegen(result))


def test_parameters_that_are_lost(export: Export) -> None:
    source = WRITES.replace("LINE", "").replace(
        "    build = M", "    module = M()\n    def build():\n        return module"
    )
    result = export(source, X, BATCH)
    assert result.code == 1
    assert result.error.startswith("//pkg:m: forward() writes to the module's parameters, and")


def test_trials_share_parameters_but_not_buffers() -> None:
    module = torch.nn.BatchNorm1d(3)
    trials = state.Trials(module, lambda: module, "//pkg:m")
    with trials.module_to_try() as tried:
        assert tried is not None and tried is not module
        assert next(tried.parameters()) is module.weight
        assert next(tried.buffers()) is not module.running_mean
    assert trials.module is module


def test_trials_without_any_module() -> None:
    def fails() -> torch.nn.Module:
        raise DriverError("no")

    module = torch.nn.Linear(1, 1)
    vars(module)["generator"] = (i for i in (1, 2))
    with state.Trials(module, fails, "//pkg:m").module_to_try() as tried:
        assert tried is None


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_differences(dtype: torch.dtype) -> None:
    a = torch.linspace(-1, 1, 100, dtype=torch.float64).to(dtype)
    b, c, d = a.clone(), a.clone(), a.clone()
    b[3] += 0.01
    c[3] += 1
    d[3] = float("nan")
    assert state.differences(a, a.clone()) is None
    assert state.differences(a, b) is None
    assert state.differences(d, d.clone()) is None
    assert str(state.differences(a, c)).startswith("largest difference 1")
    assert state.differences(a, d) == "largest difference inf (largest value 1)"
    infinite = torch.full((2,), float("inf"), dtype=dtype)
    assert state.differences(infinite, infinite.clone()) is None
    assert state.differences(infinite, -infinite) is not None


def test_differences_of_numbers() -> None:
    assert state.differences((1.0, 2, True), (1.001, 2, True)) is None
    assert state.differences(float("nan"), float("nan")) is None
    assert state.differences(1.0, 1.5) == "1.5 in place of 1.0"
    assert state.differences(float("nan"), 1.5) == "1.5 in place of nan"
    assert state.differences((1.0, 200), (1.0, 201)) == "result 1: 201 in place of 200"


def test_differences_of_small_dtypes() -> None:
    a = torch.tensor([1.0, 2.0, -3.0]).to(torch.float8_e4m3fn)
    assert state.differences(a, a.clone()) is None
    b = torch.tensor([1.0, 2.0, 3.0]).to(torch.float8_e4m3fn)
    assert state.differences(a, b) == "largest difference 6 (largest value 3)"
