"""The spec of a request: what a rule asks of a step, beside files. Each step has a type for it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TypeVar

from aoti_driver.base.errors import DriverError
from aoti_driver.contract import json_records

T = TypeVar("T")


def read_spec(argument: str | Path, cls: type[T]) -> T:
    """The value of ``--spec``: JSON in place, or the path of a file with it."""
    text = str(argument)
    try:
        if not text.startswith("{"):
            text = Path(text).read_text(encoding="utf-8")
        return json_records.build(cls, json.loads(text), "spec")
    except OSError as e:
        raise DriverError(f"--spec={argument}: can't be read: {e.strerror}") from None
    except ValueError as e:
        raise DriverError(f"--spec: this is not what the rules write: {e}") from None
