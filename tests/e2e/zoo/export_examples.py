"""torch.export's own examples, out of the torch package: `<name>` and `<name>_inputs` for each.

They cover what models do beside arithmetic: control flow operators, pytrees, mutation, views.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch._export.db.case import ExportCase, SupportLevel
from torch._export.db.examples import all_examples


def _builder(case: ExportCase) -> Callable[[], torch.nn.Module]:
    return lambda: case.model


def _sampler(case: ExportCase) -> Callable[[], tuple[tuple[Any, ...], dict[str, Any]]]:
    return lambda: (case.example_args, case.example_kwargs)


_EXAMPLES: dict[str, ExportCase] = all_examples()  # type: ignore[no-untyped-call]

for _name, _case in _EXAMPLES.items():
    if _case.support_level == SupportLevel.SUPPORTED:
        globals()[_name] = _builder(_case)
        globals()[f"{_name}_inputs"] = _sampler(_case)
