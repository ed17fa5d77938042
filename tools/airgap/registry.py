"""A module registry over the rulesets that Debian packages, so that Bazel needs no other.

Debian has one version of each ruleset; the registry serves it under whatever version is asked for.
A MODULE.bazel may therefore name current versions, as long as only what both have is used.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path

from .base import AirgapError
from .bazel import INSTALL_BASE
from .modules import Versions, top_level_calls

_DEBIAN = {
    "bazel_features": "tools/features",
    "bazel_skylib": "tools/skylib",
    "platforms": "tools/platforms",
    "rules_cc": "rules/cc",
    "rules_java": "rules/java",
    "rules_license": "rules/license",
    "rules_proto": "rules/proto",
    "rules_python": "rules/python",
    "rules_shell": "rules/shell",
    "stardoc": "tools/stardoc",
}
# Bazel's own modules depend on these; nothing of them is loaded for C++, Python and shell.
_STUBS: dict[str, dict[str, str]] = {
    "apple_support": {},
    "buildozer": {
        "buildozer_binary.bzl": """\
def _empty_impl(rctx):
    rctx.file("BUILD.bazel", "")

_empty = repository_rule(implementation = _empty_impl)

def _buildozer_binary_impl(_mctx):
    _empty(name = "buildozer_binary")

buildozer_binary = module_extension(implementation = _buildozer_binary_impl)
"""
    },
    "protobuf": {},
    "zlib": {},
}
# The server itself asks for this one, in its local_config_platform.
_BUILT_IN: Versions = {"platforms": {"0.0.7"}}

_RENDERER = """\
#!/bin/sh
jar=$(ls -d "${{RUNFILES_DIR:-$0.runfiles}}"/stardoc*/stardoc/renderer_prebuilt.jar)
exec "{java}" -cp "$jar" com.google.devtools.build.stardoc.renderer.RendererMain "$@"
"""


def _replaced(path: Path, *changes: tuple[str, str]) -> None:
    """Edits a file of a ruleset; what is to be replaced must be there."""
    text = path.read_text()
    for old, new in changes:
        if old not in text:
            raise AirgapError(f"{path} is not as expected: no {old!r} in it")
        text = text.replace(old, new)
    path.write_text(text)


def _overlay_stardoc(copy: Path, java: Path) -> None:
    """Runs the prebuilt renderer with our JVM: Java rules would need a JDK from elsewhere."""
    build = copy / "stardoc/BUILD"
    text = build.read_text()
    start, end = text.find("java_import("), text.find("# Sources needed for release")
    if not 0 <= start < end:
        raise AirgapError(f"{build} is not as expected: no java_import before the release sources")
    binary = (
        'sh_binary(\n    name = "renderer",\n    srcs = ["renderer.sh"],\n'
        '    data = ["renderer_prebuilt.jar"],\n)\n\n'
    )
    build.write_text(text[:start] + binary + text[end:])
    _replaced(build, ('load("@rules_java//java:defs.bzl", "java_binary", "java_import")\n', ""))
    script = copy / "stardoc/renderer.sh"
    script.write_text(_RENDERER.format(java=java))
    script.chmod(0o755)


def _overlay_python(copy: Path) -> None:
    """Lets the old pip.parse take today's attributes hub_name and python_version."""
    _replaced(
        copy / "python/extensions/pip.bzl",
        ("attr.name", "hub"),
        (
            "for attr in mod.tags.parse:\n",
            "for attr in mod.tags.parse:\n            hub = attr.hub_name or attr.name\n",
        ),
        (
            '"name": attr.string(mandatory = True),',
            '"name": attr.string(),\n        "hub_name": attr.string(),\n'
            '        "python_version": attr.string(),',
        ),
    )


def build_sources(place: Path, final: Path) -> None:
    """Writes changed rulesets and stubs to `place/modules`; part of the prefix."""
    debian = place / "root" / INSTALL_BASE
    for name, overlay in (("rules_python", _overlay_python), ("stardoc", None)):
        source = debian / _DEBIAN[name]
        if not source.exists():
            continue
        copy = place / "modules" / name
        shutil.copytree(source, copy)
        if overlay:
            overlay(copy)
        else:
            _overlay_stardoc(copy, final / "jre/bin/java")
    for name, files in _STUBS.items():
        folder = place / "modules" / name
        folder.mkdir(parents=True)
        (folder / "MODULE.bazel").write_text(f'module(name = "{name}")\n')
        (folder / "BUILD.bazel").write_text("")
        for file, text in files.items():
            (folder / file).write_text(text)


def module_sources(prefix: Path) -> dict[str, Path]:
    """Where each module that can be served lies."""
    found = {}
    for name in [*_DEBIAN, *_STUBS]:
        own = prefix / "modules" / name
        debian = prefix / "root" / INSTALL_BASE / _DEBIAN.get(name, "none")
        source = own if own.exists() else debian
        if (source / "MODULE.bazel").exists():
            found[name] = source
    return found


def renamed(text: str, name: str, version: str) -> str:
    """The text of a MODULE.bazel with another name and version in its module() call."""

    for call in top_level_calls(text, f"MODULE.bazel of {name}"):
        if call.function == "module":
            words = {**call.kwargs, "name": name, "version": version}
            body = "".join(f"    {key} = {value!r},\n" for key, value in words.items())
            lines = text.splitlines(keepends=True)
            lines[call.first - 1 : call.last] = [f"module(\n{body})\n"]
            return "".join(lines)
    raise AirgapError(f"MODULE.bazel of {name} has no module()")


def _all_versions(prefix: Path, sources: Mapping[str, Path], asked: Versions) -> Versions:
    """What is asked for by the user, by Bazel itself, and by the modules served."""
    total: Versions = {}

    def add(name: object, version: object) -> None:
        if isinstance(name, str) and isinstance(version, str) and version:
            total.setdefault(name, set()).add(version)

    for versions in (_BUILT_IN, asked):
        for name, numbers in versions.items():
            for number in numbers:
                add(name, number)
    embedded = prefix / "root" / INSTALL_BASE / "embedded_tools/MODULE.bazel"
    for file in [embedded, *(source / "MODULE.bazel" for source in sources.values())]:
        for call in top_level_calls(file.read_text(), str(file)):
            if call.function in ("bazel_dep", "module") and not call.kwargs.get("dev_dependency"):
                add(call.kwargs.get("name"), call.kwargs.get("version"))
    return total


def write_registry(registry: Path, prefix: Path, asked: Versions) -> list[str]:
    """Writes the registry; returns the modules asked for that it can't serve."""
    sources = module_sources(prefix)
    texts = {name: (source / "MODULE.bazel").read_text() for name, source in sources.items()}
    registry.mkdir(parents=True)
    (registry / "bazel_registry.json").write_text("{}\n")
    versions = _all_versions(prefix, sources, asked)
    for name, source in sources.items():
        folder = registry / "modules" / name
        for version in versions.get(name, ()):
            (folder / version).mkdir(parents=True)
            (folder / version / "MODULE.bazel").write_text(renamed(texts[name], name, version))
            where = {"type": "local_path", "path": str(source)}
            (folder / version / "source.json").write_text(json.dumps(where) + "\n")
        if name in versions:
            listing = {"versions": sorted(versions[name]), "yanked_versions": {}}
            (folder / "metadata.json").write_text(json.dumps(listing) + "\n")
    return sorted(set(asked) - set(sources))
