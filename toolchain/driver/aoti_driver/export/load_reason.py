"""Finds the reason why ``torch.export.load`` can't load a file.

torch logs the relevant exception with its traceback, and raises another one that refers to the log.
"""

from __future__ import annotations

import contextlib
import logging
import re
from collections.abc import Iterator

from aoti_driver.base.errors import chain

_UNKNOWN_OPERATOR = re.compile(r"failed to resolve torch\.ops\.(\S+) to an operator")
_LOGGER = "torch.export"


class Logged(logging.Handler):
    """Keeps the first exception that torch logs, and prints nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.error: BaseException | None = None

    def emit(self, record: logging.LogRecord) -> None:
        if self.error is None and record.exc_info and record.exc_info[1]:
            self.error = record.exc_info[1]

    def reason(self, raised: BaseException) -> str:
        """One line: the innermost cause, or the name of an unknown operator with advice."""
        errors = list(chain(self.error or raised))
        for error in errors:
            if operator := _UNKNOWN_OPERATOR.search(str(error)):
                return (
                    f"it calls the operator {operator[1]}, which torch does not have. It is a "
                    "custom operator, or belongs to another version of torch"
                )
        for error in reversed(errors):
            if lines := str(error).strip().splitlines():
                return lines[0]
        return type(raised).__name__


@contextlib.contextmanager
def logged() -> Iterator[Logged]:
    """Collects what ``torch.export.load`` logs inside the block."""
    logger = logging.getLogger(_LOGGER)
    handler = Logged()
    propagate, logger.propagate = logger.propagate, False
    handlers, logger.handlers = logger.handlers, [handler]
    try:
        yield handler
    finally:
        logger.propagate, logger.handlers = propagate, handlers
