"""Runs pytest on the test files that are given as arguments."""

import sys

import pytest

sys.exit(pytest.main(["-q", "-p", "no:cacheprovider", *sys.argv[1:]]))
