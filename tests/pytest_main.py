"""Runs pytest on the files that the test rule names; an empty collection is a failure.

Drawn examples are the same in each run, so that a test fails for all or for none;
`--test_env=HYPOTHESIS_PROFILE=random` looks for new ones.
"""

import os
import sys

import pytest
from hypothesis import settings

settings.register_profile("repeatable", derandomize=True, database=None, deadline=None)
settings.register_profile("random", database=None, deadline=None, print_blob=True)

if __name__ == "__main__":
    settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeatable"))
    # Without confcutdir, pytest reads no conftest.py above the folder of the test files.
    flags = ["-p", "no:cacheprovider", "--import-mode=importlib", "--confcutdir=.", "-q"]
    sys.exit(pytest.main([*flags, *sys.argv[1:]]))
