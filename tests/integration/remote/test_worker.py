"""What an action sees of its machine: nothing that the other tests assume to be hidden."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.nested_bazel import NestedBazel
from tests.integration.remote.server import Server, programs

_BUILD = r"""
genrule(
    name = "report",
    srcs = ["input.txt"],
    outs = ["report.txt"],
    cmd = '''{
        echo "root:" $$(ls -A /)
        echo "etc:" $$(ls -A /etc)
        echo "local:" $$(ls -A /usr/local)
        echo "interfaces:" $$(grep -o '^ *[a-z0-9]*:' /proc/net/dev)
        echo "variables:" $$(env | sed 's/=.*//' | sort)
        echo "python:" $$(python3 -c 'print("runs")' 2>/dev/null)
        echo "compiler:" $$(gcc -dumpversion)
    } > $@''',
)
"""


@pytest.fixture
def module(tmp_path: Path) -> Path:
    folder = tmp_path / "module"
    folder.mkdir()
    (folder / "MODULE.bazel").write_text('module(name = "probe")\n', encoding="utf-8")
    (folder / "BUILD.bazel").write_text(_BUILD, encoding="utf-8")
    (folder / "input.txt").touch()
    (folder / "not_declared.txt").touch()
    return folder


def test_what_an_action_sees(module: Path, tmp_path: Path) -> None:
    bazel = NestedBazel("remote/worker", module=module, timeout_s=240)
    with Server(programs(), tmp_path / "server") as server:
        remote = ["--disk_cache=", f"--remote_executor={server.address}"]
        try:
            bazel.run("clean")  # what the test before built
            bazel.run("build", "//:report", *remote, "--spawn_strategy=remote")
            report = Path(bazel.output("info", "bazel-bin"), "report.txt").read_text("utf-8")
        finally:
            bazel.close()
    seen = dict(line.split(":", 1) for line in report.splitlines())
    words = {key: set(text.split()) for key, text in seen.items()}
    # An action's folder is the root of all that it sees.
    image = {"bin", "dev", "etc", "lib", "lib64", "proc", "tmp", "usr"}
    assert words["root"] - image <= {"bazel-out", "external", "input.txt"}
    assert words["etc"] == {"alternatives", "ld.so.cache"}
    assert words["local"] == set()
    assert words["interfaces"] == {"lo:"}
    assert words["variables"] <= {"PATH", "PWD", "SHLVL", "_"}
    assert words["python"] == set()
    assert words["compiler"], "no C++ compiler: the models could not be built"
