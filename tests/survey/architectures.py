"""All architectures of the survey. To list them needs nothing but torch; to build one, its package.

The configurations are small, the weights are random: the operators are those of the real model.
"""

from __future__ import annotations

from tests.survey import (
    export_examples,
    timm_models,
    torch_control_flow,
    torch_nn,
    torch_operators,
    torch_quantized,
    torchvision_operators,
    transformers_other,
    transformers_text,
)
from tests.survey.registry import Architecture

ARCHITECTURES: list[Architecture] = [
    *transformers_text.ARCHITECTURES,
    *transformers_other.ARCHITECTURES,
    *timm_models.ARCHITECTURES,
    *torch_nn.ARCHITECTURES,
    *torch_operators.ARCHITECTURES,
    *torch_control_flow.ARCHITECTURES,
    *torch_quantized.ARCHITECTURES,
    *torchvision_operators.ARCHITECTURES,
    *export_examples.ARCHITECTURES,
]

BY_ID: dict[str, Architecture] = {a.id: a for a in ARCHITECTURES}
if len(BY_ID) != len(ARCHITECTURES):
    raise AssertionError("two architectures of the survey have the same name")
