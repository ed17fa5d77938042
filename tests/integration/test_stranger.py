"""README's example and the tutorial, word for word: their files in an empty folder, their commands.

rules_aoti comes as a release from a registry, as it does for its users: an archive of its source,
and one of the compiled runtime. There is no .bazelrc. Files and commands are those that stand in
the pages' text.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration import stranger
from tests.integration.nested_bazel import NestedBazel, state, workspace

README = (workspace() / "README.md").read_text(encoding="utf-8")
TUTORIAL = (workspace() / "docs/tutorial.md").read_text(encoding="utf-8")
FILES = stranger.files(TUTORIAL)
# Bazel's own, for what tools/airgap's registry does not stand in for.
CENTRAL = "https://bcr.bazel.build"

# The one that this build has found: it has pip and C headers.
FACTS = json.loads(Path(os.environ["PYTHON_FACTS"]).read_text(encoding="utf-8"))
INTERPRETER = FACTS["base_executable"]
RUNTIME = Path(os.environ["RUNTIME"].split()[0]).parent

FROM_SOURCE = "--@rules_aoti//runtime:from_source"

FLAGS = [
    "--incompatible_auto_exec_groups",
    "--incompatible_no_implicit_file_export",
]

# Debian's rules_python, which tools/airgap's registry serves, calls Bazel 7's own Python rules.
NOT_WITH_NATIVE_PYTHON = [
    "--incompatible_disallow_struct_provider_syntax",
    "--incompatible_python_disallow_native_rules",
]


def write_module(place: Path, files: dict[str, str]) -> None:
    shutil.rmtree(place, ignore_errors=True)
    for path, text in files.items():
        (place / path).parent.mkdir(parents=True, exist_ok=True)
        (place / path).write_text(text, encoding="utf-8")


@pytest.fixture(scope="module")
def bazel() -> Iterator[NestedBazel]:
    place = state() / "stranger_module"
    write_module(place, {**stranger.files(README), **FILES})
    nested = NestedBazel("stranger", module=place)
    yield nested
    nested.close()


@pytest.fixture(scope="module")
def registries() -> list[str]:
    place = state() / "stranger_registry"
    shutil.rmtree(place, ignore_errors=True)
    return [f"--registry={stranger.publish(workspace(), place, RUNTIME)}", f"--registry={CENTRAL}"]


def test_the_pages_show_whole_files() -> None:
    assert stranger.files(README).keys() == {
        "MODULE.bazel",
        "hello/BUILD.bazel",
        "hello/net_py.py",
    }
    assert FILES.keys() == {
        "MODULE.bazel",
        "models/BUILD.bazel",
        "models/client.py",
        "models/encoder_model.py",
        "models/server.cc",
    }
    assert stranger.commands(README) == [["build", "//hello:net"], ["test", "//hello:net_test"]]
    assert stranger.commands(TUTORIAL) == [
        ["run", "//models:server"],
        ["run", "//models:client"],
        ["test", "//models:encoder_test"],
    ]


def test_bazel_dep_alone(bazel: NestedBazel, registries: list[str]) -> None:
    """What the tutorial says of C++: the three bazel_dep are enough."""
    module = FILES["MODULE.bazel"]
    deps = "".join(re.findall(r"^bazel_dep\(.*\)\n", module, re.MULTILINE))
    (bazel.module / "MODULE.bazel").write_text(deps, encoding="utf-8")
    output = bazel.run("run", "//models:server", *registries).text
    assert len(numbers(output)) == 8


@pytest.mark.parametrize("flags", [[], [FROM_SOURCE]])
def test_the_runtime_is_compiled_if_that_is_asked_for(
    bazel: NestedBazel, registries: list[str], flags: list[str]
) -> None:
    (bazel.module / "MODULE.bazel").write_text(FILES["MODULE.bazel"], encoding="utf-8")
    query = 'mnemonic("CppCompile", deps(//models:server))'
    quiet = ["--output=text", "--lockfile_mode=off"]
    actions = bazel.output("aquery", query, *quiet, *registries, *flags)
    assert "models/encoder" in actions
    for part in ("runtime/slim/ops/", "runtime/core/parallel.cc", "runtime/slim/kernels/"):
        assert (f"rules_aoti+/{part}" in actions or f"rules_aoti~/{part}" in actions) == bool(flags)


def test_another_cxx_library_than_that_of_the_compiled_runtime(
    bazel: NestedBazel, registries: list[str]
) -> None:
    """The error names the flag, before anything is linked."""
    (bazel.module / "MODULE.bazel").write_text(FILES["MODULE.bazel"], encoding="utf-8")
    other_abi = "--cxxopt=-D_GLIBCXX_USE_CXX11_ABI=0"
    run = bazel.run("build", "//models:server", other_abi, *registries, check=False)
    assert run.code
    assert 'put "build --@rules_aoti//runtime:from_source" into .bazelrc' in run.text
    assert "undefined reference" not in run.text


def test_readme_word_for_word(bazel: NestedBazel, registries: list[str]) -> None:
    module = stranger.files(README)["MODULE.bazel"]
    (bazel.module / "MODULE.bazel").write_text(module, encoding="utf-8")
    for command, *arguments in stranger.commands(README):
        bazel.run(command, *arguments, *registries)
    # Triton is for models for CUDA alone.
    external = Path(bazel.output("info", "output_base")) / "external"
    fetched = [path.name for path in external.iterdir()]
    assert [name for name in fetched if "torch_site" in name]
    assert not [name for name in fetched if "torch_triton" in name]


def test_tutorial_word_for_word(bazel: NestedBazel, registries: list[str]) -> None:
    (bazel.module / "MODULE.bazel").write_text(FILES["MODULE.bazel"], encoding="utf-8")
    outputs = {}
    for command, *arguments in stranger.commands(TUTORIAL):
        outputs[" ".join([command, *arguments])] = bazel.run(command, *arguments, *registries).text
    from_cc = numbers(outputs["run //models:server"])
    from_python = numbers(outputs["run //models:client"])
    assert len(from_cc) == 8
    assert from_python == pytest.approx(from_cc, rel=1e-5)
    assert (bazel.module / ".bazelrc").exists() is False


@pytest.mark.parametrize("flag", FLAGS)
def test_analysed_with(flag: str, bazel: NestedBazel, registries: list[str]) -> None:
    """What other workspaces set, and later Bazels do by default."""
    (bazel.module / "MODULE.bazel").write_text(FILES["MODULE.bazel"], encoding="utf-8")
    bazel.run("build", "--nobuild", "//models:all", flag, *registries)


def test_analysed_with_newer_defaults(bazel: NestedBazel, registries: list[str]) -> None:
    """What Bazel 8, 9 and 10 do by default, as far as Bazel 7 has flags for it."""
    (bazel.module / "MODULE.bazel").write_text(FILES["MODULE.bazel"], encoding="utf-8")
    flags = (
        newer_defaults() if bazel.output("version", "--gnu_format").startswith("bazel 7") else []
    )
    bazel.run("build", "--nobuild", "//models:all", *flags, *registries)


# As rules_python's @python_3_13_host: a link to an interpreter that lies elsewhere.
HOST_PYTHON = """\
def _host_python_impl(rctx):
    rctx.symlink(rctx.attr.interpreter, "python")
    rctx.file("BUILD.bazel", "exports_files(['python'])")

host_python = repository_rule(
    implementation = _host_python_impl,
    attrs = {"interpreter": attr.string()},
)
"""
USE_HOST_PYTHON = """
host_python = use_repo_rule("//:host_python.bzl", "host_python")
host_python(name = "python_host", interpreter = "INTERPRETER")
torch.toolchain(interpreter = "@python_host//:python")
use_repo(torch, "torch_python")
"""


@pytest.mark.parametrize(
    ("interpreter", "refused"),
    [(INTERPRETER, ""), ("/bin/false", "python: doesn't run: exit code 1")],
)
def test_an_interpreter_of_a_repository(
    bazel: NestedBazel, registries: list[str], interpreter: str, refused: str
) -> None:
    (bazel.module / "BUILD.bazel").touch()
    (bazel.module / "host_python.bzl").write_text(HOST_PYTHON, encoding="utf-8")
    use = USE_HOST_PYTHON.replace("INTERPRETER", interpreter)
    (bazel.module / "MODULE.bazel").write_text(FILES["MODULE.bazel"] + use, encoding="utf-8")
    run = bazel.run("build", "@torch_python//:python", *registries, check=not refused)
    assert bool(run.code) == bool(refused) and refused in run.text
    if not refused:
        file = "@torch_python//:python.json"
        flags = ["--output=files", "--lockfile_mode=off", *registries]
        path = bazel.output("cquery", file, *flags)
        facts = json.loads(Path(bazel.output("info", "output_base"), path).read_text("utf-8"))
        assert Path(facts["executable"]).parent.name.endswith("python_host")


def newer_defaults() -> list[str]:
    text = (workspace() / "tools/compatibility/newer_bazel.bazelrc").read_text(encoding="utf-8")
    flags = re.findall(r"^(?:build|common) (--\S+)$", text, re.MULTILINE)
    kept = [flag for flag in flags if flag not in NOT_WITH_NATIVE_PYTHON]
    assert len(kept) == len(flags) - len(NOT_WITH_NATIVE_PYTHON) > 5
    return kept


def numbers(text: str) -> list[float]:
    """The eight outputs of the model, which a program prints after everything that Bazel says."""
    printed = text.rpartition("Running command line")[2]
    return [float(word) for word in re.findall(r"-?\d\.\d+(?:e-?\d+)?", printed)]
