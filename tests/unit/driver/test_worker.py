"""The worker, as Bazel talks to it, with subcommands that need no torch."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.unit.driver.harness import DRIVER

# Stands in for a subcommand's module: what a request does is in its flag.
FAKE = """
import os, signal, sys, tempfile

def add_arguments(parser):
    parser.add_argument("--do")

def run(args):
    from aoti_driver.errors import DriverError
    if args.do == "crash":
        os.kill(os.getpid(), signal.SIGSEGV)
    if args.do == "fail":
        raise DriverError("//a:b: the user's mistake")
    if args.do == "bug":
        raise ZeroDivisionError("a bug")
    if args.do == "leak":
        os.environ["LEAKED"] = "1"
        sys.modules["leaked"] = sys
    print("cwd", os.getcwd(), "leaked" in sys.modules, sorted(os.environ), os.environ["HOME"])
    print("temporary", tempfile.mkdtemp())
    print("torch", sorted(name for name in sys.modules if name.startswith("torch")))
"""


@pytest.fixture
def driver(tmp_path: Path) -> list[str]:
    """main.py with a copy of the front, whose ``bindings`` is the fake."""
    package = tmp_path / "driver" / "aoti_driver"
    package.mkdir(parents=True)
    for name in ("__init__", "cli", "environment", "errors", "files", "worker"):
        (package / f"{name}.py").symlink_to(DRIVER / "aoti_driver" / f"{name}.py")
    (package / "bindings.py").write_text(FAKE, encoding="utf-8")
    main = tmp_path / "driver" / "main.py"
    main.write_text((DRIVER / "main.py").read_text(encoding="utf-8"), encoding="utf-8")
    (tmp_path / "site").mkdir()
    return [sys.executable, "-I", "-S", str(main), f"--site={tmp_path / 'site'}"]


def talk(driver: list[str], *requests: dict[str, Any] | str, **env: str) -> list[dict[str, Any]]:
    lines = [r if isinstance(r, str) else json.dumps(r) for r in requests]
    done = subprocess.run(
        [*driver, "--persistent_worker"],
        input="".join(f"{line}\n" for line in lines),
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, **env},
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def request(do: str, **more: Any) -> dict[str, Any]:
    return {"arguments": ["bindings", f"--do={do}"], "inputs": [], **more}


def test_answers_each_request(driver: list[str]) -> None:
    answers = talk(driver, request("fail"), request("crash", requestId=7), request("ok"))
    assert answers[0] == {"exitCode": 1, "output": "//a:b: the user's mistake\n", "requestId": 0}
    assert answers[1]["exitCode"] == 139 and answers[1]["requestId"] == 7
    assert "the driver's process was ended by SIGSEGV" in answers[1]["output"]
    assert answers[2]["exitCode"] == 0 and answers[2]["output"].startswith("cwd ")


def test_what_the_export_does_without_is_imported_while_it_runs(
    driver: list[str], tmp_path: Path
) -> None:
    for name in ("torch/__init__", "torch/export", "torch/_inductor/__init__"):
        file = tmp_path / "site" / f"{name}.py"
        file.parent.mkdir(exist_ok=True)
        file.touch()
    (tmp_path / "site/torch/_inductor/compile_fx.py").touch()
    _, first, second = talk(driver, "{nonsense", request("ok"), request("ok"))
    assert "torch ['torch', 'torch.export']\n" in first["output"]
    assert "torch ['torch', 'torch._inductor', 'torch._inductor.compile_fx'" in second["output"]


def test_an_internal_error_has_a_traceback(driver: list[str]) -> None:
    (answer,) = talk(driver, request("bug"))
    assert answer["exitCode"] == 2
    assert answer["output"].startswith("internal error of rules_aoti's driver")
    assert "ZeroDivisionError: a bug" in answer["output"]


def test_requests_do_not_see_each_other(driver: list[str]) -> None:
    first, second = talk(driver, request("leak"), request("ok"))
    assert " True " in first["output"] and "LEAKED" in first["output"]
    assert " False " in second["output"] and "LEAKED" not in second["output"]


def test_the_environment_is_fixed(driver: list[str]) -> None:
    poison = {"TORCH_LOGS": "+all", "PYTHONPATH": "/nowhere", "OMP_NUM_THREADS": "3"}
    (answer,) = talk(driver, request("ok"), HOME="/nowhere", **poison)
    for name in poison:
        assert name not in answer["output"]
    assert "/nowhere" not in answer["output"]


def test_temporary_files_are_removed(driver: list[str], tmp_path: Path) -> None:
    (tmp_path / "t").mkdir()
    (answer,) = talk(driver, request("ok"), TMPDIR=str(tmp_path / "t"))
    assert f"temporary {tmp_path / 't'}/" in answer["output"]
    assert list((tmp_path / "t").iterdir()) == []


def test_sandbox_directory(driver: list[str], tmp_path: Path) -> None:
    (tmp_path / "box").mkdir()
    (answer,) = talk(driver, request("ok", sandboxDir=str(tmp_path / "box")))
    assert f"cwd {tmp_path / 'box'} " in answer["output"]


def test_a_params_file(driver: list[str], tmp_path: Path) -> None:
    (tmp_path / "p").write_text("bindings\n--do=fail\n", encoding="utf-8")
    (answer,) = talk(driver, {"arguments": [f"@{tmp_path / 'p'}"]})
    assert answer["exitCode"] == 1 and "the user's mistake" in answer["output"]
    once = subprocess.run([*driver, f"@{tmp_path / 'p'}"], capture_output=True, text=True)
    assert (once.returncode, once.stdout) == (1, "")
    assert once.stderr == "//a:b: the user's mistake\n"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{nonsense", "not a work request"),
        ({"arguments": []}, "expected a subcommand (export, import, "),
        ({"arguments": ["exprot"]}, 'got "exprot"'),
        ({"arguments": ["bindings", "--unknown=1"]}, "bindings: unrecognized arguments"),
        ({"arguments": ["@missing"]}, "@missing: cannot be read: No such file"),
    ],
)
def test_bad_requests(driver: list[str], line: Any, message: str) -> None:
    answers = talk(driver, line, request("ok"))
    assert answers[0]["exitCode"] == 1 and message in answers[0]["output"]
    assert answers[1]["exitCode"] == 0


def test_a_site_that_does_not_exist(driver: list[str]) -> None:
    done = subprocess.run([*driver, "--site=/no/such"], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (1, "--site=/no/such: no such directory\n")


def test_export_in_worker_and_alone(tmp_path: Path) -> None:
    """The real thing: the same bytes, from any folder, with and without a worker."""
    import torch

    site = Path(str(torch.__file__)).parents[1]
    (tmp_path / "m.py").write_text(
        "import torch\n"
        "def build():\n"
        "    return torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU())\n",
        encoding="utf-8",
    )
    (tmp_path / "spec.json").write_text(
        json.dumps(
            {
                "label": "//pkg:m",
                "name": "m",
                "entry_point": "pkg.m:build",
                "inputs": {"input": "float32[batch, 4]"},
                "dynamic_dims": {"batch": "1..64"},
            }
        ),
        encoding="utf-8",
    )
    names = ("graph", "weights", "manifest")

    def arguments(folder: Path) -> list[str]:
        return [
            "export",
            f"--spec={tmp_path / 'spec.json'}",
            f"--source=_main/pkg/m.py={tmp_path / 'm.py'}",
            "--import_root=_main",
            *(f"--out_{n}={folder / n}" for n in names),
        ]

    command = [sys.executable, "-I", "-S", str(DRIVER / "main.py"), f"--site={site}"]
    alone, elsewhere, worker = (tmp_path / n for n in ("alone", "elsewhere", "worker"))
    for folder in (alone, elsewhere, worker):
        folder.mkdir()
    done = subprocess.run([*command, *arguments(alone)], cwd=elsewhere, capture_output=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    answers = talk(
        command,
        {"arguments": arguments(worker)},
        {"arguments": ["export", "--spec=missing"]},
        {"arguments": arguments(elsewhere)},
    )
    assert [a["exitCode"] for a in answers] == [0, 1, 0], answers
    for name in names:
        expected = (alone / name).read_bytes()
        assert (worker / name).read_bytes() == (elsewhere / name).read_bytes() == expected
