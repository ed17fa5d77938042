"""torch.export's own examples, which come with torch: control flow, pytrees, mutation, views."""

from __future__ import annotations

from collections.abc import Callable

from torch._export.db.case import ExportCase, SupportLevel
from torch._export.db.examples import all_examples

from tests.survey.registry import Architecture, Sample


def _builder(case: ExportCase) -> Callable[[], Sample]:
    return lambda: Sample(case.model.eval(), case.example_args, case.example_kwargs, batch=False)


_EXAMPLES: dict[str, ExportCase] = all_examples()  # type: ignore[no-untyped-call]

ARCHITECTURES = [
    Architecture(name, "torch.export", _builder(case))
    for name, case in sorted(_EXAMPLES.items())
    if case.support_level == SupportLevel.SUPPORTED
]
