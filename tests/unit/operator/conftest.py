"""Makes the package importable where the tests run outside of Bazel."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).parents[3]
if find_spec("aoti_operator") is None:
    sys.path.append(str(ROOT / "runtime" / "operator"))
