"""Operators of the namespace ``rules_aoti``, which passes put into graphs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.library import Library

_LIBRARY = Library("rules_aoti", "FRAGMENT")  # type: ignore[no-untyped-call]


def declare(schema: str, reference: Callable[..., Any]) -> Any:
    """An operator that computes what the reference does, where nothing else is written for it.

    schema: without the namespace, as in "scale(Tensor x, float factor) -> Tensor"
    """
    name = schema.partition("(")[0]
    _LIBRARY.define(schema)  # type: ignore[no-untyped-call]
    _LIBRARY.impl(  # type: ignore[no-untyped-call]
        name, reference, "CompositeExplicitAutograd"
    )
    torch.library.register_fake(f"rules_aoti::{name}", reference, lib=_LIBRARY)
    return getattr(torch.ops.rules_aoti, name).default
