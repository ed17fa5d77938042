"""Runs the driver's subcommands in this process, on models written by the tests."""

from __future__ import annotations

import itertools
import json
import sys
import textwrap
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[3]
if find_spec("aoti_driver") is None:  # not in Bazel
    sys.path[:0] = [str(ROOT), str(ROOT / "toolchain" / "driver")]

from aoti_driver.process import cli  # noqa: E402

from tests.unit.driver.harness import Export, Result  # noqa: E402

_count = itertools.count()


@pytest.fixture
def export(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Export]:
    """Exports a model from its source text; the module is called ``m`` in entry points."""
    path, modules = list(sys.path), set(sys.modules)
    monkeypatch.chdir(tmp_path)

    def run(
        source: str,
        inputs: Mapping[str, str] | None = None,
        dims: Mapping[str, str] | None = None,
        *,
        entry: str = "pkg.m:build",
        weights: Mapping[str, Path] | None = None,
        extra: Mapping[str, Path] | None = None,
        **spec: Any,
    ) -> Result:
        folder = tmp_path / f"run{next(_count)}"
        folder.mkdir()
        (folder / "m.py").write_text(textwrap.dedent(source), encoding="utf-8")
        (folder / "spec.json").write_text(
            json.dumps(
                {
                    "label": "//pkg:m",
                    "name": "m",
                    "entry_point": entry,
                    "inputs": inputs or {},
                    "sample_inputs": None,
                    "dynamic_dims": dims or {},
                    "strict": False,
                    "decompositions": [],
                    "method": None,
                    **spec,
                }
            ),
            encoding="utf-8",
        )
        outs = [folder / n for n in ("graph.json", "m.safetensors", "manifest.json", "lines.json")]
        flags = ("graph", "weights", "manifest", "locations")
        args = [
            "export",
            f"--spec={folder / 'spec.json'}",
            f"--source=_main/pkg/m.py={folder / 'm.py'}",
            *(f"--source={name}={target}" for name, target in (extra or {}).items()),
            *(f"--weight={name}={target}" for name, target in (weights or {}).items()),
            "--import_root=_main",
            *(f"--out_{n}={p}" for n, p in zip(flags, outs)),
        ]
        for name in set(sys.modules) - modules:
            if name == "pkg" or name.startswith("pkg."):
                del sys.modules[name]
        sys.path[:] = path
        capsys.readouterr()
        code = cli.main(args)
        error = capsys.readouterr().err
        if code != 0:
            assert [p for p in folder.iterdir() if p.name not in ("m.py", "spec.json")] == []
        return Result(code, error, *outs)

    yield run
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        if name == "pkg" or name.startswith("pkg."):
            del sys.modules[name]
