"""Models built on a server; a second client gets them, and no action runs."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from tests.integration.remote.client import DOWNLOAD, Build, Client

# What runs for the models, and what makes torch a folder.
STEPS = set(os.environ["STEPS"].split())
MODELS = len(os.environ["MODELS"].split())


def unpacked_torch(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("torch/__init__.py") if path.is_file()]


def test_every_step_runs_on_the_server(first: Client, first_build: Build) -> None:
    # An action of this build may be one of another configuration: then the server has it already.
    assert first_build.runners().keys() <= {"remote", "remote cache hit"}
    assert first_build.executed().keys() >= STEPS
    assert unpacked_torch(first.output_base()) == [], "a client needs the wheels alone"


def test_steps_ask_for_their_pools(first_build: Build) -> None:
    others = {"OSFamily": "linux"}
    assert first_build.properties("TorchExport") == [others | {"ISA": "x86-64"}] * MODELS
    assert first_build.properties("AotiCodegen") == [others] * MODELS
    assert first_build.properties("AotiBindings") == [others] * MODELS


def test_a_second_client_runs_nothing(
    first_build: Build, second: Client, differences: Callable[[Client], list[str]]
) -> None:
    build = second.build(DOWNLOAD)
    assert build.runners().keys() == {"remote cache hit"}
    assert len(build.spawns) == len(first_build.spawns)
    assert unpacked_torch(second.output_base()) == []
    assert differences(second) == []
