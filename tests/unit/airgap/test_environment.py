"""The keys by which environments and prefixes are reused or made anew."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from airgap import environment, truststore
from airgap.environment import ensure, locate


@pytest.fixture(autouse=True)
def bundle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    file = tmp_path / "ca.pem"
    file.write_text("")
    monkeypatch.setenv("SSL_CERT_FILE", str(file))
    return file


def _module(folder: Path, version: str) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "MODULE.bazel").write_text(f'bazel_dep(name = "rules_cc", version = "{version}")\n')
    return folder


def test_module_versions_change_the_environment_only(tmp_path: Path) -> None:
    one = locate(tmp_path / "cache", [_module(tmp_path / "w", "1")])
    two = locate(tmp_path / "cache", [_module(tmp_path / "w", "2")])
    assert one.folder != two.folder
    assert one.prefix == two.prefix
    assert locate(tmp_path / "cache", [_module(tmp_path / "w", "1")]) == one


def test_comments_change_nothing(tmp_path: Path) -> None:
    before = locate(tmp_path / "cache", [_module(tmp_path / "w", "1")])
    with (tmp_path / "w/MODULE.bazel").open("a") as file:
        file.write("# a comment\n")
    assert locate(tmp_path / "cache", [tmp_path / "w"]).folder == before.folder


def test_own_sources_change_the_prefix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sources = tmp_path / "sources"
    sources.mkdir()
    (sources / "a.py").write_text("1")
    monkeypatch.setattr(environment, "_SOURCES", sources)
    before = locate(tmp_path / "cache", [])
    (sources / "a.py").write_text("2")
    after = locate(tmp_path / "cache", [])
    assert before.prefix != after.prefix
    assert before.folder != after.folder


def test_a_moved_cache_is_not_used(tmp_path: Path) -> None:
    one, two = locate(tmp_path / "one", []), locate(tmp_path / "two", [])
    assert one.prefix.name != two.prefix.name


def test_new_certificates_change_the_environment(tmp_path: Path, bundle: Path) -> None:
    before = locate(tmp_path / "cache", [])
    bundle.write_text("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
    after = locate(tmp_path / "cache", [])
    assert before.prefix == after.prefix
    assert before.folder != after.folder


def test_command_of_a_ready_prefix(tmp_path: Path) -> None:
    place = locate(tmp_path / "cache dir", [_module(tmp_path / "w", "1")])
    base = place.prefix / "root/usr/share/bazel/embedded_tools"
    base.mkdir(parents=True)
    (base / "MODULE.bazel").write_text("")
    client = place.prefix / "root/usr/bin/bazel"
    client.parent.mkdir(parents=True)
    client.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    client.chmod(0o755)
    command = ensure(place)
    assert place.ready
    words = subprocess.run([command, "build", "a b"], capture_output=True, text=True, check=True)
    options = words.stdout.splitlines()
    assert options[-2:] == ["build", "a b"]
    assert f"--bazelrc={place.folder}/bazelrc" in options
    store = next(word for word in options if "trustStore=" in word).partition("trustStore=")[2]
    assert Path(store).read_bytes() == truststore.java_truststore("")
    assert (place.folder / "registry").as_uri() in (place.folder / "bazelrc").read_text()
    version = subprocess.run([command, "--version"], capture_output=True, text=True, check=True)
    assert version.stdout == "bazel 7.7.1\n"
