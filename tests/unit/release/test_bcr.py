"""What the Bazel Central Registry reads, and the workflows that publish there."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import yaml
from release.archive import Release, integrity
from release.presubmit import from_registry, read_presubmit, write_registry

from tests.unit.release import tree

ROOT = tree.workspace()
BCR = ROOT / ".bcr"
WORKFLOWS = ROOT / ".github" / "workflows"
# The Python of the registry's images, and the gcc where that is too old.
PYTHONS = {"debian12": "3.11", "debian13": "3.13", "fedora43": "3.14", "ubuntu2404": "3.12"}


def workflow(name: str) -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load((WORKFLOWS / name).read_text(encoding="utf-8"))
    return loaded


def presubmit() -> dict[str, Any]:
    text = (BCR / "presubmit.yml").read_text(encoding="utf-8")
    module: dict[str, Any] = yaml.safe_load(text)["bcr_test_module"]
    return module


def test_metadata() -> None:
    metadata = json.loads((BCR / "metadata.template.json").read_text(encoding="utf-8"))
    assert metadata.keys() == {
        "homepage",
        "maintainers",
        "repository",
        "versions",
        "yanked_versions",
    }
    assert metadata["versions"] == [] and metadata["yanked_versions"] == {}
    (repository,) = metadata["repository"]
    assert metadata["homepage"] == "https://github.com/" + repository.removeprefix("github:")
    assert all(m.keys() == {"email", "github", "name"} for m in metadata["maintainers"])


def test_the_owner_is_named_in_one_place() -> None:
    metadata = json.loads((BCR / "metadata.template.json").read_text(encoding="utf-8"))
    owner = metadata["repository"][0].removeprefix("github:").partition("/")[0]
    files = [*BCR.iterdir(), *WORKFLOWS.iterdir(), *(ROOT / "tools" / "release").glob("*.py")]
    files += [ROOT / "README.md", ROOT / "docs" / "releasing.md"]
    assert [f.name for f in files if owner in f.read_text("utf-8")] == ["metadata.template.json"]


def test_matrix() -> None:
    matrix = presubmit()["matrix"]
    assert {version.partition(".")[0] for version in matrix["bazel"]} == {"7", "8", "9"}
    pythons = [PYTHONS[platform] for platform in matrix["platform"]]
    assert len({python for python in pythons if python != "3.11"}) >= 2
    for task in presubmit()["tasks"].values():
        assert (task["platform"], task["bazel"]) == ("${{ platform }}", "${{ bazel }}")


def test_tasks_name_targets_that_are_there() -> None:
    path, tasks = read_presubmit((BCR / "presubmit.yml").read_text(encoding="utf-8"))
    module = ROOT / path
    assert (module / "MODULE.bazel").is_file()
    assert [command[0] for task in tasks for command in task.commands()] == ["build", "test"]
    for target in [t for task in tasks for t in [*task.build_targets, *task.test_targets]]:
        package, _, name = target.removeprefix("//").partition(":")
        if package.endswith("..."):
            builds = list((module / package.removesuffix("...")).rglob("BUILD.bazel"))
            assert any("_test" in build.read_text(encoding="utf-8") for build in builds), target
        else:
            text = (module / package / "BUILD.bazel").read_text(encoding="utf-8")
            assert f'name = "{name or Path(package).name}"' in text, target


def test_registry_entry(tmp_path: Path) -> None:
    """Of the templates, as presubmit.py uses it: the archive's name and folder agree with them."""
    release = Release("1.2.3", b"an archive", "")
    archive = tmp_path / release.file_name
    archive.write_bytes(release.archive)
    write_registry(tmp_path / "registry", release, archive, "module()\n")
    entry = tmp_path / "registry" / "modules" / "rules_aoti" / "1.2.3"
    source = json.loads((entry / "source.json").read_text(encoding="utf-8"))
    assert source["strip_prefix"] == release.prefix == "rules_aoti-1.2.3"
    assert source["integrity"] == integrity(b"an archive")
    assert (entry / "MODULE.bazel").read_text(encoding="utf-8") == "module()\n"


def test_test_module_from_the_registry() -> None:
    path, _ = read_presubmit((BCR / "presubmit.yml").read_text(encoding="utf-8"))
    text = from_registry((ROOT / path / "MODULE.bazel").read_text(encoding="utf-8"), "1.2.3")
    assert "local_path_override" not in text
    assert 'bazel_dep(name = "rules_aoti", version = "1.2.3")' in text


def test_workflows() -> None:
    release, publish = workflow("release.yaml")["jobs"], workflow("publish.yaml")["jobs"]
    attested = {"attestations": "write", "contents": "write", "id-token": "write"}
    for job in (release["release"], release["publish"], publish["publish"]):
        assert job["permissions"] == attested
    assert publish["publish"]["with"]["attest"] is True
    assert release["publish"]["uses"] == "./.github/workflows/publish.yaml"
    pattern = release["release"]["with"]["release_files"].replace("*", ".*")
    assert re.fullmatch(pattern, Release("1.2.3", b"", "").file_name)
    assert (WORKFLOWS / "release_prep.sh").stat().st_mode & 0o111
    for job in (release["release"], publish["publish"]):
        assert re.fullmatch(r"bazel-contrib/[\w./-]+\.yaml@v\d+\.\d+\.\d+", job["uses"])


def test_a_tag_starts_the_release() -> None:
    text = (WORKFLOWS / "release.yaml").read_text(encoding="utf-8")
    # YAML takes the key `on` for a boolean.
    assert yaml.safe_load(text)[True]["push"]["tags"] == ["v[0-9]+.[0-9]+.[0-9]+*"]
