"""A module of tests/e2e builds and passes its own tests."""

import os

from tests.integration.nested_bazel import NestedBazel


def test_all_targets() -> None:
    bazel = NestedBazel(os.environ["E2E_MODULE"])
    try:
        bazel.compile_runtime()
        bazel.run(*os.environ["COMMAND"].split())
    finally:
        bazel.close()
