"""Packages that belong to one build of torch, such as torchvision, and fail with another one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from aoti_driver.export.source import SourceTree

_NAMES = ("torchaudio", "torchvision")
_VERSION = re.compile(r"^__version__\s*=\s*['\"]([^'\"]+)['\"]", re.MULTILINE)


def explain(chain: Iterable[BaseException], tree: SourceTree) -> str:
    """The cause of errors that such a package of the wrong build raises; otherwise empty."""
    text = "\n".join(str(error) for error in chain)
    for name in _NAMES:
        if name in text and (found := _find(name, tree)):
            path, version = found
            if hint := _mismatch(name, version, path, torch.__version__):
                return hint
    return ""


def _find(name: str, tree: SourceTree) -> tuple[str, str] | None:
    """The place of the package in the tree, and its version with the build (PyPI's versions have
    none).
    """
    roots: Sequence[str] = [*tree.import_roots, "."]
    for root in roots:
        file = Path(tree.root, root, name, "version.py")
        if file.is_file() and (match := _VERSION.search(file.read_text(encoding="utf-8"))):
            return tree.name(file.parent), match[1]
    return None


def _mismatch(name: str, version: str, path: str, torch_version: str) -> str:
    release, _, build = version.partition("+")
    wanted = torch_version.partition("+")[2]
    if not build or not wanted or build == wanted:
        return ""
    return (
        f" {name} {version} ({path}) is built for another torch than the toolchain's, which is "
        f"{torch_version}: its operators do not load. Lock {name}=={release}+{wanted} with its "
        f"hashes, from https://download.pytorch.org/whl/{wanted} or a mirror of it that pip "
        'reaches (PIP_EXTRA_INDEX_URL): see "torchvision and torchaudio" in docs/toolchain.md of '
        "rules_aoti:"
    )
