"""openvino, without the thread and the process that report its import to its makers.

They would take time from what is measured, and the process may wait for ever: it is forked while
other threads hold locks.
"""

from __future__ import annotations

import sys
from typing import Any

# Imports of it fail, as if it were not installed: openvino takes it to be optional.
sys.modules["openvino_telemetry"] = None  # type: ignore[assignment]

import openvino as _openvino  # noqa: E402

openvino: Any = _openvino
