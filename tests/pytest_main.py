"""Runs pytest on the files that the test rule names; an empty collection is a failure.

Drawn examples are the same in each run, so that a red test is red for everybody;
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
    sys.exit(
        pytest.main(["-p", "no:cacheprovider", "--import-mode=importlib", "-q", *sys.argv[1:]])
    )
