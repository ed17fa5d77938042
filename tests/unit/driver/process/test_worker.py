"""The worker and Bazel's protocol, with subcommands that need no torch."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.unit.driver.harness import DRIVER
from tests.unit.driver.process.fake_driver import make_driver, request, talk


@pytest.fixture
def driver(tmp_path: Path) -> list[str]:
    return make_driver(tmp_path)


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


def test_a_request_does_not_wait_for_what_later_ones_need(
    driver: list[str], tmp_path: Path
) -> None:
    """It is imported as far as there is time."""
    site = tmp_path / "site"
    for name in ("torch", "torch/_inductor", "torch/export", "sympy", "sympy/tensor"):
        (site / name).mkdir()
        (site / name / "__init__.py").touch()
    # The first request ends before the import does.
    (site / "torch/_inductor/compile_fx.py").write_text("import time; time.sleep(1)")
    (site / "sympy/tensor/tensor.py").touch()
    code = "import sys; print('sympy.tensor.tensor' in sys.modules)"
    wait = "import time; time.sleep(3)"
    answers = talk(driver, request("ok"), *(request(f"run {c}") for c in (code, wait, code)))
    assert [answer["output"] for answer in answers[1:]] == ["False\n", "", "True\n"]


def test_garbage_is_collected_rarely(driver: list[str]) -> None:
    """And what was imported isn't looked at again."""
    code = (
        "import gc; before = gc.get_stats()[0]['collections']; kept = [[] for _ in range(40_000)]; "
        "print(gc.get_stats()[0]['collections'] - before, gc.get_freeze_count() > 1000)"
    )
    _, answer = talk(driver, request("ok"), request(f"run {code}"))
    assert answer["output"] == "0 True\n"


def test_a_worker_killed_in_a_request(driver: list[str], tmp_path: Path) -> None:
    out, pid = tmp_path / "out", tmp_path / "out" / "pid"
    code = (
        "import os, time\nfrom aoti_driver.base import files\n"
        "with files.outputs(args.out) as (o,):\n o.write_text(str(os.getpid()))\n TIME"
    )
    sleeping = {"arguments": ["bindings", f"--do=run {code}", f"--out={pid}"]}
    text = json.dumps(sleeping).replace("TIME", "time.sleep(60)")
    command = [*driver, "--persistent_worker"]
    temporary = {"TMPDIR": str(tmp_path)}  # where a killed worker leaves its folder
    with subprocess.Popen(command, stdin=subprocess.PIPE, env=temporary) as worker:
        assert worker.stdin is not None
        worker.stdin.write(f"{text}\n".encode())
        worker.stdin.flush()
        while not (found := [p for p in out.glob(".aoti_*/0/pid") if p.stat().st_size]):
            time.sleep(0.05)
        worker.kill()
        worker.wait()
    child = Path("/proc", found[0].read_text(encoding="utf-8"), "stat")
    while child.exists() and child.read_text(encoding="utf-8").split(") ")[1][0] not in "ZX":
        time.sleep(0.05)
    assert not pid.exists()
    # The next one finds what was left behind, and makes the output.
    talk(driver, json.loads(json.dumps(sleeping).replace("TIME", "pass")))
    assert pid.exists() and [p.name for p in out.iterdir()] == ["pid"]


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
                "sample_inputs": None,
                "dynamic_dims": {"batch": "1..64"},
                "strict": False,
                "decompositions": [],
                "method": None,
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
