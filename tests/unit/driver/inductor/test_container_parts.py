"""Which parts of a wrapper are compiled for a package alone."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from aoti_driver.inductor import container_parts
from torch import Tensor, nn

from tests.unit.driver.inductor import harness

CLASS = "AOTInductorModel_m"
TORCH = "#include <torch/csrc/inductor/aoti_include/cpu.h>\n"
WRAPPER = f"""\
{TORCH}
namespace torch::aot_inductor {{
{CLASS}::{CLASS}(std::shared_ptr<ConstantMap> constants_map)
    : AOTInductorModelBase(2,
                           1,
                           10,
                           device_str) {{
    std::cerr << "the container";
}}
}} // namespace torch::aot_inductor
using namespace torch::aot_inductor;
namespace torch::aot_inductor {{
AOTI_NOINLINE static void __check_inputs_outputs(
    AtenTensorHandle* output_handles) {{
    check();
}}
void {CLASS}::run_impl() {{
    __check_inputs_outputs(output_handles);
    RUN
}}
}}
"""


def branches(text: str) -> tuple[str, str]:
    """What is compiled for torch's container, and what otherwise."""
    return _compiled(text, {"AOTI_STOCK"}), _compiled(text, set())


def _compiled(text: str, defined: set[str]) -> str:
    kept = []
    conditions: list[bool] = []
    for line in text.splitlines(keepends=True):
        directive, _, name = line.strip().partition(" ")
        if directive in ("#ifdef", "#ifndef"):
            conditions.append((name in defined) == (directive == "#ifdef"))
        elif directive == "#else":
            conditions[-1] = not conditions[-1]
        elif directive == "#endif":
            conditions.pop()
        elif all(conditions):
            kept.append(line)
    return "".join(kept)


def test_the_container_gets_what_torch_wrote() -> None:
    headers, wrapper = container_parts.separate(WRAPPER, CLASS)
    (torchs, own), (container, other) = branches(headers), branches(wrapper)
    assert TORCH in torchs and "generated_program.h" not in torchs
    assert container == WRAPPER.replace(TORCH, "")
    assert own == '#include "runtime/core/generated_program.h"\n'
    assert "std::cerr" not in other and "check();" not in other
    assert f"{CLASS}::{CLASS}()\n    : GeneratedProgram(2, 1, 10, " in other
    assert other.count("{") == other.count("}")
    assert other.endswith(WRAPPER[WRAPPER.index(f"void {CLASS}::run_impl") :])


def test_checks_that_the_driver_leaves_empty() -> None:
    start = WRAPPER.index("AOTI_NOINLINE")
    empty = "static void __check_inputs_outputs(AtenTensorHandle*, AtenTensorHandle*) {}\n"
    text = WRAPPER[:start] + empty + WRAPPER[WRAPPER.index("void AOTI") :]
    _, wrapper = container_parts.separate(text, CLASS)
    container, other = branches(wrapper)
    assert empty in container and empty not in other
    assert "check();" not in wrapper


@pytest.mark.parametrize("used", ["std::max({a, b, c});", "std::partial_sum(a);"])
def test_more_of_the_standard_library(used: str) -> None:
    headers, _ = container_parts.separate(WRAPPER.replace("RUN", used), CLASS)
    _, own = branches(headers)
    assert "#include <algorithm>\n" in own and "#include <numeric>\n" in own


def test_what_the_header_includes_is_not_included_again() -> None:
    used = "std::max(a, b); std::sqrt(std::numeric_limits<double>::max());"
    headers, _ = container_parts.separate(WRAPPER.replace("RUN", used), CLASS)
    assert "#include <algorithm>" not in headers


@pytest.mark.parametrize("missing", ["__check_inputs_outputs(\n", TORCH, "AOTInductorModelBase"])
def test_other_parts_are_refused(missing: str) -> None:
    with pytest.raises(AssertionError, match="AOTInductorModel_m has other parts"):
        container_parts.separate(WRAPPER.replace(missing, ""), CLASS)


class Scale(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x * 2


def test_a_program_is_compiled_without_the_container(tmp_path: Path) -> None:
    harness.freeze(tmp_path, Scale(), (torch.randn(3, 4),))
    harness.generate(tmp_path, "scale")
    wrapper = harness.sources(tmp_path)[0].read_text(encoding="utf-8")
    container, other = branches(wrapper)
    assert "inputs_info_" in container and "AOTInductorModelBase" in container
    assert "inputs_info_" not in other and "AOTInductorModelBase" not in other
    assert "#include <torch/csrc/inductor/aoti_" not in other
