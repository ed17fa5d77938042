"""The module registry, over a tiny imitation of what Debian's packages install."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from airgap.base import AirgapError
from airgap.modules import Versions, top_level_calls
from airgap.registry import build_sources, module_sources, renamed, write_registry

_PIP = """\
def _impl(module_ctx):
    for mod in module_ctx.modules:
        for attr in mod.tags.parse:
            use(attr.name)

_attrs = {
    "name": attr.string(mandatory = True),
}
"""
_STARDOC = """\
load("@rules_java//java:defs.bzl", "java_binary", "java_import")
load("//stardoc:stardoc.bzl", "stardoc")

java_import(
    name = "renderer_import",
)

java_binary(
    name = "renderer",
)

# Sources needed for release
"""
_FILES = {
    "embedded_tools/MODULE.bazel": (
        'module(name = "bazel_tools")\nbazel_dep(name = "rules_cc", version = "0.0.9")\n'
    ),
    "rules/cc/MODULE.bazel": (
        'module(name = "rules_cc", version = "0.0.0", compatibility_level = 1)\n'
        'bazel_dep(name = "platforms", version = "0.0.10")\n'
        'bazel_dep(name = "stardoc", version = "0.1", dev_dependency = True)\n'
    ),
    "rules/python/MODULE.bazel": 'module(\n    name = "rules_python",\n)\n',
    "rules/python/python/extensions/pip.bzl": _PIP,
    "tools/platforms/MODULE.bazel": 'module(\n    name = "platforms",\n    version = "0",\n)\n',
    "tools/stardoc/MODULE.bazel": 'module(name = "stardoc", version = "0.8.1")\n',
    "tools/stardoc/stardoc/BUILD": _STARDOC,
}


@pytest.fixture
def prefix(tmp_path: Path) -> Path:
    for name, text in _FILES.items():
        file = tmp_path / "prefix/root/usr/share/bazel" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    build_sources(tmp_path / "prefix", Path("/final"))
    return tmp_path / "prefix"


def _versions(registry: Path) -> Versions:
    return {
        folder.name: {version.name for version in folder.iterdir() if version.is_dir()}
        for folder in (registry / "modules").iterdir()
    }


def test_every_version_asked_for_is_served(prefix: Path, tmp_path: Path) -> None:
    registry = tmp_path / "registry"
    asked = {"rules_cc": {"0.2.14", "0.1.1"}, "rules_oci": {"2.0.0"}}
    assert write_registry(registry, prefix, asked) == ["rules_oci"]
    found = _versions(registry)
    assert found["rules_cc"] == {"0.2.14", "0.1.1", "0.0.9", "0.0.0"}
    assert found["platforms"] == {"0", "0.0.7", "0.0.10"}
    assert found["stardoc"] == {"0.8.1"}  # dev dependencies of modules do not count
    folder = registry / "modules/rules_cc/0.2.14"
    module = next(iter(top_level_calls((folder / "MODULE.bazel").read_text())))
    assert module.kwargs == {"name": "rules_cc", "version": "0.2.14", "compatibility_level": 1}
    source = json.loads((folder / "source.json").read_text())
    assert source == {"type": "local_path", "path": str(module_sources(prefix)["rules_cc"])}
    listing = json.loads((registry / "modules/rules_cc/metadata.json").read_text())
    assert set(listing["versions"]) == found["rules_cc"]


def test_overlays(prefix: Path) -> None:
    sources = module_sources(prefix)
    pip = (sources["rules_python"] / "python/extensions/pip.bzl").read_text()
    assert "hub = attr.hub_name or attr.name" in pip
    assert "use(hub)" in pip
    build = (sources["stardoc"] / "stardoc/BUILD").read_text()
    assert "java" not in build
    assert 'name = "renderer"' in build
    assert "# Sources needed for release" in build
    assert '"/final/jre/bin/java"' in (sources["stardoc"] / "stardoc/renderer.sh").read_text()


def test_unexpected_ruleset_is_an_error(tmp_path: Path) -> None:
    debian = tmp_path / "prefix/root/usr/share/bazel/rules/python/python/extensions"
    debian.mkdir(parents=True)
    (debian / "pip.bzl").write_text("nothing\n")
    with pytest.raises(AirgapError, match="not as expected"):
        build_sources(tmp_path / "prefix", Path("/final"))


@pytest.mark.parametrize(
    "text",
    [
        'module(name = "x", version = "0", compatibility_level = 1)',
        'module(\n    name = "x",\n    compatibility_level = 1,  # (soon 2)\n    version = "0",\n)',
        "module(\n    compatibility_level = 1,\n)",
    ],
)
def test_renamed(text: str) -> None:
    calls = list(top_level_calls(renamed(f"# a comment\n{text}\nother()\n", "y", "1.2")))
    assert calls[0].kwargs == {"name": "y", "version": "1.2", "compatibility_level": 1}
    assert calls[1].function == "other"
