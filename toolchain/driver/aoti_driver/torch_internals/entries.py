"""What an entry of the lists says. A place is ``module:Class.attribute``."""

from __future__ import annotations

import dataclasses
from typing import Literal

# The version that the entries were last compared with, unless they name others.
CHECKED_WITH = ("2.13.0",)

# In the place of a test: the results are the same without.
TIME_ONLY = "none, it saves time"


@dataclasses.dataclass(frozen=True)
class Change:
    """Something of PyTorch, or of sympy, that the driver replaces.

    kind: an attribute of a module or class; an attribute of an object that was made of the class;
      or entries of a table (a dict or a set).
    instead: what stands there while the step runs. reason: what would be wrong without it.
    test: a test that fails without it, or TIME_ONLY.
    by_build: whether PyTorch's builds, for CPUs and for CUDA, have different things there.
    """

    place: str
    instead: str
    reason: str
    test: str
    kind: Literal["attribute", "object", "table"] = "attribute"
    torch: tuple[str, ...] = CHECKED_WITH
    by_build: bool = False


@dataclasses.dataclass(frozen=True)
class Option:
    """An option of a configuration module that the driver sets: ``module:name``."""

    place: str
    reason: str
    torch: tuple[str, ...] = CHECKED_WITH


@dataclasses.dataclass(frozen=True)
class Use:
    """Names of one module that the driver reads or calls, and that PyTorch may change at any time.

    names: separated by blanks, ``Class.attribute`` among them.
    """

    module: str
    names: str
    reason: str
    torch: tuple[str, ...] = CHECKED_WITH

    def places(self) -> list[str]:
        return [f"{self.module}:{name}" for name in self.names.split()]
