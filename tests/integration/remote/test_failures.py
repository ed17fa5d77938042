"""What fails on a server makes a build fail or take longer, but never yields another artifact."""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.integration.remote.client import DOWNLOAD, Build, Client
from tests.integration.remote.server import Server

Differences = Callable[[Client], list[str]]

# What tells the steps apart: the file of an action's arguments, named after its first output.
EXPORT = ".graph.json-"
CODEGEN = ".program.cpp-"
_START_S = 300
# Bazel's exit code for a failure of the server.
REMOTE_ERROR = 34


@pytest.fixture
def client(first: Client, first_build: Build, server: Server) -> Client:
    """A client without outputs, for which the models are exported and generated anew."""
    for step in ("TorchExport", "AotiCodegen"):
        server.forget(first_build.action(step))
    first.forget()
    return first


def while_running(step: str, client: Client, server: Server, act: Callable[[int], None]) -> Build:
    """Builds, and calls `act` with the process of a step's action as soon as there is one."""
    with ThreadPoolExecutor(1) as pool:
        build = pool.submit(client.build, DOWNLOAD, check=False)
        deadline = time.monotonic() + _START_S
        while not (processes := server.running(step)):
            assert not build.done(), f"nothing of {step} ran:\n{build.result().run.text}"
            assert time.monotonic() < deadline, f"nothing of {step} runs"
            time.sleep(0.05)
        act(processes[-1])
        return build.result()


def kill(process: int) -> None:
    os.kill(process, signal.SIGKILL)


def test_action_killed(client: Client, server: Server, differences: Differences) -> None:
    """As by a system without memory: the action fails, and the next build is not affected."""
    build = while_running(EXPORT, client, server, kill)
    assert build.run.code == 1, build.run.text
    assert re.search(r"Exporting //models:\w+ failed: \(Killed\)", build.run.text), build.run.text
    again = client.build(DOWNLOAD)
    assert again.executed().keys() == {"TorchExport", "AotiCodegen"}
    assert differences(client) == []


def test_runner_killed(client: Client, server: Server, differences: Differences) -> None:
    """A worker is gone: its action is run again, in the same build."""
    build = while_running(CODEGEN, client, server, lambda p: kill(server.runner_of(p)))
    assert build.run.code == 0, build.run.text
    assert differences(client) == []


def test_server_dies_and_comes_back(
    client: Client, server: Server, differences: Differences
) -> None:
    """Bazel asks again, and gives up if the new server never heard of what it asks for."""

    def restart(_: int) -> None:
        server.stop_casd(signal.SIGKILL)
        time.sleep(1)
        server.start_casd()

    build = while_running(CODEGEN, client, server, restart)
    if build.run.code:
        assert build.run.code == REMOTE_ERROR, build.run.text
        assert "NOT_FOUND: The operation was not found" in build.run.text
        client.build(DOWNLOAD)
    assert differences(client) == []


def test_server_restarted_between_builds(
    first: Client, first_build: Build, server: Server, differences: Differences
) -> None:
    server.stop_casd()
    server.start_casd()
    first.forget()
    assert first.build(DOWNLOAD).runners().keys() == {"remote cache hit"}
    assert differences(first) == []


@pytest.fixture
def blobs(first: Client, first_build: Build, server: Server) -> Callable[[str], list[Path]]:
    """The server's files with the models' artifacts of a kind; the client has no outputs."""
    first.forget()

    def find(suffix: str) -> list[Path]:
        found = [server.blob(digest) for digest in first_build.written(suffix)]
        assert found, f"no action wrote *{suffix}"
        for blob in found:
            blob.chmod(0o644)
        return found

    return find


def corrupt(blob: Path) -> None:
    """Writes other content of the same size."""
    content = bytearray(blob.read_bytes())
    content[len(content) // 2] ^= 1
    blob.write_bytes(content)


def test_corrupt_artifact(
    blobs: Callable[[str], list[Path]], first: Client, differences: Differences
) -> None:
    """Bazel takes no file whose digest is wrong. The server has to lose it to make it anew."""
    artifacts = blobs(".pt2")
    for blob in artifacts:
        corrupt(blob)
    build = first.build(DOWNLOAD, check=False)
    assert build.run.code != 0
    assert re.search(r"\.pt2 download failed: Expected digest", build.run.text), build.run.text
    for blob in artifacts:
        blob.unlink()
    assert first.build(DOWNLOAD).executed().keys() == {"AotiPackage", "TorchPackage"}
    assert differences(first) == []


def test_truncated_artifact(
    blobs: Callable[[str], list[Path]], first: Client, differences: Differences
) -> None:
    """The server sees that a file has the wrong size, and the action runs again."""
    for blob in blobs(".manifest.json"):
        blob.write_bytes(b"")
    assert "AotiShim" in first.build(DOWNLOAD).executed()
    assert differences(first) == []


def test_corrupt_input(
    blobs: Callable[[str], list[Path]],
    first: Client,
    first_build: Build,
    server: Server,
    differences: Differences,
) -> None:
    """Only the action sees what it reads on a worker: a step compares it with a digest."""
    graphs = blobs(".graph.json")
    good = [blob.read_bytes() for blob in graphs]
    for blob, content in zip(graphs, good):
        assert b"aten.add.Tensor" in content
        blob.write_bytes(content.replace(b"aten.add.Tensor", b"aten.sub.Tensor", 1))
    server.forget(first_build.action("AotiCodegen"))
    build = first.build(DOWNLOAD, check=False)
    assert build.run.code == 1, build.run.text
    assert "not the graph that the manifest was written for" in build.run.text
    for blob, content in zip(graphs, good):
        blob.write_bytes(content)
    first.build(DOWNLOAD)
    assert differences(first) == []
