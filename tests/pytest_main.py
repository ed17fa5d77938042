"""Runs pytest on the files that the test rule names; an empty collection is a failure."""

import sys

import pytest

if __name__ == "__main__":
    sys.exit(
        pytest.main(["-p", "no:cacheprovider", "--import-mode=importlib", "-q", *sys.argv[1:]])
    )
