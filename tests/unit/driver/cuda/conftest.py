"""Makes Triton importable: in Bazel, it is not among the packages of the tests."""

from __future__ import annotations

import os
import sys

if site := os.environ.get("TRITON_SITE"):
    sys.path.append(os.path.abspath(site))
