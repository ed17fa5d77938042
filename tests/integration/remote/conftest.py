"""One server for all tests, on which a first client has built the models."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.integration.differences import different_files
from tests.integration.nested_bazel import state
from tests.integration.remote.client import Build, Client
from tests.integration.remote.server import Server, programs

PACKAGE = os.environ["PACKAGE"]


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    with Server(programs(), state() / "remote" / "server") as server:
        yield server


def _client(name: str, server: Server) -> Iterator[Client]:
    client = Client(
        name,
        server.address,
        labels=[f"//{PACKAGE}:{model}" for model in os.environ["MODELS"].split()],
        groups=os.environ["GROUPS"],
    )
    client.forget()  # what the test before left
    yield client
    client.bazel.close()


@pytest.fixture(scope="session")
def first(server: Server) -> Iterator[Client]:
    yield from _client("first", server)


@pytest.fixture(scope="session")
def second(server: Server) -> Iterator[Client]:
    yield from _client("second", server)


@pytest.fixture(scope="session")
def first_build(first: Client) -> Build:
    """The models as the first client builds them, before any test has disturbed the server."""
    return first.build()


@pytest.fixture(scope="session")
def local_artifacts() -> Path:
    """The folder of the same models, as the build that runs this test has made them."""
    return Path(os.environ["TEST_SRCDIR"], os.environ["TEST_WORKSPACE"], PACKAGE)


@pytest.fixture(scope="session")
def differences(local_artifacts: Path) -> Callable[[Client], list[str]]:
    """Says where a client's files are not those of the local build."""
    # A directory artifact is a link to it.
    names = sorted(
        os.path.relpath(os.path.join(folder, file), local_artifacts)
        for folder, _, files in os.walk(local_artifacts, followlinks=True)
        for file in files
    )
    assert names, f"no artifact in {local_artifacts}"

    def compare(client: Client) -> list[str]:
        return different_files(local_artifacts, client.outputs() / PACKAGE, names)

    return compare
