"""Versions of torch, as manifests and graphs name them."""

from __future__ import annotations


def public_version(torch_version: str) -> str:
    """The version without the name of the build: `2.13.0` for `2.13.0+cpu`."""
    return torch_version.split("+")[0]
