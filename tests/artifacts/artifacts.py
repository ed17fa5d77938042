"""Where the built files lie in the test's runfiles."""

from __future__ import annotations

import os
from pathlib import Path

# name of the model -> its package
MODELS = {"glass_aoti": "models", "mixer": "tests/artifacts"}


def runfile(path: str) -> Path:
    """A file of this workspace, by its path from the workspace's root."""
    found = Path(os.environ["TEST_SRCDIR"], os.environ["TEST_WORKSPACE"], path)
    assert found.exists(), f"{path} is not in the runfiles"
    return found


def artifact(model: str, suffix: str, prefix: str = "") -> Path:
    """A file of a model, such as `lib<model>.so`."""
    return runfile(f"{MODELS[model]}/{prefix}{model}{suffix}")
