"""Errors and what caused them."""

from __future__ import annotations

from aoti_driver.base.errors import chain


def test_chain_follows_causes_before_contexts() -> None:
    cause, context, inner = KeyError("cause"), OSError("context"), TypeError("inner")
    cause.__context__ = inner
    error = ValueError("error")
    error.__cause__, error.__context__ = cause, context
    assert list(chain(error)) == [error, cause, inner]


def test_chain_follows_contexts_that_count_as_causes() -> None:
    error, middle, last = ImportError("error"), ImportError("middle"), KeyError("last")
    error.__context__, middle.__context__, last.__context__ = middle, last, OSError("context")
    assert list(chain(error, lambda e: isinstance(e, ImportError))) == [error, middle, last]


def test_chain_of_errors_that_caused_each_other_ends() -> None:
    one, other = ValueError("one"), KeyError("other")
    one.__cause__, other.__cause__ = other, one
    assert list(chain(one)) == [one, other]
