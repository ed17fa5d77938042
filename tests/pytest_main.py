"""Runs pytest on the files that the test rule names; an empty collection is a failure.

Drawn examples are the same in each run, so that a test fails for all or for none;
`--test_env=HYPOTHESIS_PROFILE=random` looks for new ones.
"""

import gc
import os
import sys

import pytest
from hypothesis import settings

settings.register_profile("repeatable", derandomize=True, database=None, deadline=None)
settings.register_profile("random", database=None, deadline=None, print_blob=True)

# torch makes millions of objects, most of them while it is imported: a garbage collection after
# every 700 of them takes a fifth of the time of a short test.
_COLLECT_AFTER = (50_000, 20, 100)


class _ImportsStay:
    """Keeps the garbage collector from what the test files import, which is never garbage."""

    @staticmethod
    def pytest_collection_finish() -> None:
        gc.freeze()


if __name__ == "__main__":
    gc.set_threshold(*_COLLECT_AFTER)
    settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeatable"))
    # Without confcutdir, pytest reads no conftest.py above the folder of the test files.
    flags = ["-p", "no:cacheprovider", "--import-mode=importlib", "--confcutdir=.", "-q"]
    sys.exit(pytest.main([*flags, *sys.argv[1:]], plugins=[_ImportsStay()]))
