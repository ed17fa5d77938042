"""Operators of ``torch_operator``, where the source of a model that calls them runs.

Nothing is compiled for that: PyTorch computes the programs that they are compiled from, in place of
the compiled Python modules.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import torch
from torch.utils import _pytree as pytree

from aoti_driver.contract.manifest import ProgramManifest
from aoti_driver.contract.manifest_file import read_manifest
from aoti_driver.program.loading import load_program
from aoti_driver.program.weights_file import read_weights


def stand_in(entries: Sequence[str], root: Path) -> None:
    """Takes ``<module>=<graph>,<weights>,<manifest>`` entries; a module with several has variants.

    root: the folder of the runfiles.
    """
    programs: dict[str, list[Sequence[Path]]] = {}
    for entry in entries:
        module, _, paths = entry.partition("=")
        programs.setdefault(module, []).append([root / path for path in paths.split(",")])
    for name, files in programs.items():
        library: Any = ModuleType(name)
        library.InputError = _InputError
        library.load = _Loader(files)
        sys.modules[name] = library


class _InputError(ValueError):
    """What no variant takes."""


class _Loader:
    """Loads the programs, as the compiled module's load()."""

    def __init__(self, files: Sequence[Sequence[Path]]) -> None:
        self._files = files

    def __call__(self) -> Any:
        several = len(self._files) > 1
        modules = [_module(paths, several) for paths in self._files]
        return SimpleNamespace(_flat=lambda *given: _first_that_takes(modules, given))


def _module(files: Sequence[Path], check: bool) -> Any:
    graph, weights, manifest_path = files
    manifest = read_manifest(manifest_path, ProgramManifest)
    return load_program(graph, manifest, read_weights(weights)).module(check_guards=check)


def _first_that_takes(modules: Sequence[Any], given: Sequence[Any]) -> list[torch.Tensor]:
    refused = ""
    for module in modules:
        try:
            with torch.no_grad():
                results = module(*given)
        except (AssertionError, RuntimeError) as e:
            refused = str(e)
            continue
        return [leaf for leaf in pytree.tree_leaves(results) if isinstance(leaf, torch.Tensor)]
    raise _InputError(f"program: {refused}")
