"""A step reaches its inputs and its outputs, and nothing else of the machine, in a worker or alone.

The barrier is the kernel's: where a test machine's kernel has no part of it, the tests say so by
comparing with what the driver itself tells of it.
"""

from __future__ import annotations

import errno
import json
import os
import platform
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from aoti_driver.process import landlock, seccomp

from tests.unit.driver.harness import DRIVER
from tests.unit.driver.process.fake_driver import make_driver, request, talk
from tests.unit.driver.process.steps import SITE

Attempt = Callable[..., tuple[int, str]]


@pytest.fixture
def driver(tmp_path: Path) -> list[str]:
    return make_driver(tmp_path)


@pytest.fixture(params=["worker", "alone"])
def attempt(request: pytest.FixtureRequest, driver: list[str], tmp_path: Path) -> Attempt:
    """Runs Python in a step; the exit status and what was printed."""

    def run(code: str, *flags: str, options: Sequence[str] = ()) -> tuple[int, str]:
        arguments = ["bindings", f"--do=run {code}", *flags]
        if request.param == "worker":
            (answer,) = talk([*driver, *options], {"arguments": arguments}, TMPDIR=str(tmp_path))
            return answer["exitCode"], answer["output"]
        done = subprocess.run(
            [*driver, *options, *arguments],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env={"TMPDIR": str(tmp_path)},
        )
        return done.returncode, done.stdout + done.stderr

    return run


def refused(answer: tuple[int, str]) -> bool:
    return answer[0] == 2 and "PermissionError: [Errno 13]" in answer[1]


def test_files(attempt: Attempt, tmp_path: Path) -> None:
    assert landlock.version(), "this kernel has no Landlock; Linux 5.13 has"
    secret, declared = tmp_path / "secret", tmp_path / "declared"
    secret.write_text("secret", encoding="utf-8")
    declared.write_text("declared", encoding="utf-8")
    link = tmp_path / "link"
    link.symlink_to(declared)
    for path in (declared, link):
        answer = attempt("print(open(args.input).read())", f"--input={path}")
        assert answer == (0, "declared\n")
    assert refused(attempt(f"open({str(secret)!r})", f"--input={declared}"))
    assert refused(attempt("import os; os.listdir('/')"))
    assert refused(attempt(f"import os; os.open({str(secret)!r}, os.O_RDONLY)"))
    run = f"import subprocess; print(subprocess.run(['cat', {str(secret)!r}]).returncode)"
    assert "1\n" in attempt(run)[1]
    assert refused(attempt(f"open({str(declared)!r}, 'w')", f"--input={declared}"))
    assert refused(attempt(f"open({str(tmp_path / 'new')!r}, 'w')"))
    assert refused(attempt(f"import os; os.unlink({str(secret)!r})"))
    assert declared.read_text(encoding="utf-8") == "declared" and secret.exists()
    assert refused(attempt("import os, stat; os.mknod('disk', stat.S_IFBLK, os.makedev(7, 0))"))
    in_scratch = "import os, stat, tempfile; os.chdir(tempfile.mkdtemp()); "
    device = in_scratch + "os.mknod('disk', stat.S_IFBLK | 0o600, os.makedev(7, 0))"
    assert "PermissionError: " in attempt(device)[1]


def test_an_output(attempt: Attempt, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    other = tmp_path / "out" / "other"
    other.write_text("of another target", encoding="utf-8")
    write = (
        "from aoti_driver.base import files\n"
        "with files.outputs(args.out) as (o,): o.write_text('x')"
    )
    out = f"--out={tmp_path / 'out' / 'file'}"
    assert attempt(write, out) == (0, "")
    assert (tmp_path / "out" / "file").read_text(encoding="utf-8") == "x"
    assert refused(attempt(f"open({str(other)!r}, 'w')", out))
    assert {p.name for p in (tmp_path / "out").iterdir()} == {"other"}


def test_the_network(attempt: Attempt) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        connect = f"import socket; socket.create_connection(('127.0.0.1', {port}), 5)"
        assert refused(attempt(connect))
    assert refused(attempt("import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM)"))
    assert refused(attempt("import socket; socket.socket(socket.AF_UNIX)"))
    # What runs inside of a process stays possible.
    assert attempt("import asyncio; asyncio.new_event_loop().close()") == (0, "")
    locks = "import multiprocessing as m; print(m.get_context('fork').Pool(1).map(abs, [-1]))"
    assert attempt(locks) == (0, "[1]\n")


def test_threads_and_temporary_files(attempt: Attempt) -> None:
    code = "import tempfile; f = tempfile.NamedTemporaryFile(); f.write(b'x'); print('done')"
    assert attempt(code) == (0, "done\n")


@pytest.mark.parametrize(
    "code",
    [
        "for i in range(3, 99):\n try: os.write(i, b'{}\\n')\n except OSError: pass",
        "for i in range(99):\n"
        " try: open(f'/proc/{os.getppid()}/fd/{i}', 'wb', 0).write(b'{}\\n')\n"
        " except OSError: pass",
        "import ctypes; c = ctypes.CDLL(None); pid = os.getppid()\n"
        "fd = c.syscall(434, pid, 0); print(c.syscall(438, fd, 1, 0), c.ptrace(16, pid, 0, 0))",
    ],
    ids=["inherited", "proc", "pidfd"],
)
def test_the_protocol(driver: list[str], code: str) -> None:
    attack = request(f"run import os\n{code}", requestId=1)
    attack["arguments"].append("--source=m.py=/m.py")
    answers = talk(driver, attack, request("ok"))
    assert [a["exitCode"] for a in answers] == [0, 0], answers
    assert [a["requestId"] for a in answers] == [1, 0]
    assert answers[0]["output"] == ("-1 -1\n" if "434" in code else "")


def test_signals_to_the_worker(driver: list[str]) -> None:
    """Sends signal 0, which does nothing: the test is harmless where the barrier fails."""
    code = (
        "import os\n"
        "for p in os.getppid(), -os.getpgid(os.getppid()), -1:\n"
        " try: os.kill(p, 0); print('sent')\n"
        " except PermissionError: print('refused')\n"
        "os.kill(os.getpid(), 0)"
    )
    (answer,) = talk(driver, request(f"run {code}"))
    assert answer["output"] == "refused\n" * 3


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("rt_sigqueueinfo", "parent, 0, info"),
        ("rt_tgsigqueueinfo", "parent, parent, 0, info"),
        ("pidfd_send_signal", "os.open(f'/proc/{parent}', os.O_RDONLY), 0, None, 0"),
        ("prlimit64", "parent, 7, None, None"),  # which only asks
        ("sched_setaffinity", "parent, 0, None"),  # of no CPU
    ],
)
def test_other_ways_to_the_worker(driver: list[str], name: str, arguments: str) -> None:
    machine = platform.machine()
    number = {**seccomp.REFUSED[machine], **seccomp.TO_PROCESSES[machine]}[name]
    code = (
        "import ctypes, os, struct\nparent = os.getppid()\n"
        "info = struct.pack('3i', 0, 0, -1) + bytes(116)\n"
        "c = ctypes.CDLL(None, use_errno=True)\n"
        f"print(c.syscall({number}, {arguments}), ctypes.get_errno())"
    )
    (answer,) = talk(driver, request(f"run {code}"))
    assert answer["output"] == f"-1 {errno.EACCES}\n"


def test_what_is_left_running_ends_with_the_step(driver: list[str], tmp_path: Path) -> None:
    pid = tmp_path / "out" / "pid"
    code = (
        "import os, time\nchild = os.fork()\nif not child: time.sleep(99)\n"
        "from aoti_driver.base import files\n"
        "with files.outputs(args.out) as (o,): o.write_text(str(child))"
    )
    (answer,) = talk(driver, {"arguments": ["bindings", f"--do=run {code}", f"--out={pid}"]})
    assert answer["exitCode"] == 0
    state = Path("/proc", pid.read_text(encoding="utf-8"), "stat")
    assert not state.exists() or state.read_text(encoding="utf-8").split(") ")[1][0] in "ZX"


@pytest.mark.parametrize("ends", ["", "import ctypes; ctypes.CDLL(None)._exit(3)"])
def test_a_daemon_ends_with_the_step(attempt: Attempt, tmp_path: Path, ends: str) -> None:
    """One that left the step's session, and whose parent is gone."""
    code = (
        "import os, sys, time\nreading, writing = os.pipe()\n"
        "if not os.fork():\n os.setsid()\n if os.fork(): os._exit(0)\n"
        " os.write(writing, str(os.getpid()).encode())\n time.sleep(99)\n"
        f"print(os.read(reading, 99).decode(), flush=True)\n{ends}"
    )
    status, text = attempt(code)
    assert status == (3 if ends else 0)
    assert not Path("/proc", text.strip()).exists()


@pytest.mark.parametrize("worker", [True, False])
def test_a_step_that_is_interrupted(driver: list[str], tmp_path: Path, worker: bool) -> None:
    out, temporary = tmp_path / "out", tmp_path / "temporary"
    temporary.mkdir()
    code = (
        "import os, time\nfrom aoti_driver.base import files\n"
        "with files.outputs(args.out) as (o,):\n"
        " child = os.fork()\n"
        " if child: o.write_text(f'{os.getpid()} {child}')\n"
        " time.sleep(99)"
    )
    arguments = ["bindings", f"--do=run {code}", f"--out={out / 'file'}"]
    with subprocess.Popen(
        [*driver, *(["--persistent_worker"] if worker else arguments)],
        stdin=subprocess.PIPE,
        env={"TMPDIR": str(temporary)},
        text=True,
    ) as process:
        assert process.stdin is not None
        if worker:
            process.stdin.write(json.dumps({"arguments": arguments}) + "\n")
            process.stdin.flush()
        while not (written := [p for p in out.glob(".aoti_*/0/file") if p.stat().st_size]):
            time.sleep(0.05)
        started = written[0].read_text(encoding="utf-8").split()
        process.terminate()
    assert process.returncode == 143
    assert list(out.iterdir()) == list(temporary.iterdir()) == []
    assert len(started) == 2 and not any(Path("/proc", number).exists() for number in started)


@pytest.mark.parametrize("kind", ["output", "folder", "inside"])
def test_links_are_no_outputs(attempt: Attempt, tmp_path: Path, kind: str) -> None:
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "file").write_text("secret", encoding="utf-8")
    do = {
        "output": f"o.symlink_to({str(secret / 'file')!r})",
        "folder": f"o.parent.rmdir(); o.parent.symlink_to({str(secret)!r})",
        "inside": f"o.mkdir(); (o / 'd').mkdir(); (o / 'd' / 'x').symlink_to({str(secret)!r})",
    }[kind]
    code = f"from aoti_driver.base import files\nwith files.outputs(args.out) as (o,): {do}"
    status, text = attempt(code, f"--out={tmp_path / 'out' / 'file'}")
    assert status == 1
    assert text.startswith('the step put links in the place of its output "file", or into it; ')
    assert list((tmp_path / "out").iterdir()) == [] and (secret / "file").exists()


def test_a_folder_as_output(attempt: Attempt, tmp_path: Path) -> None:
    """Bazel makes it, empty, in advance."""
    (tmp_path / "out" / "folder").mkdir(parents=True)
    code = (
        "from aoti_driver.base import files\n"
        "with files.outputs(args.out) as (o,):\n o.mkdir()\n (o / 'x').write_text('x')"
    )
    assert attempt(code, f"--out={tmp_path / 'out' / 'folder'}") == (0, "")
    assert [str(p.relative_to(tmp_path)) for p in (tmp_path / "out").rglob("*")] == [
        "out/folder",
        "out/folder/x",
    ]


def test_closed_standard_files(driver: list[str], tmp_path: Path) -> None:
    code = (
        "import os, sys\nfrom aoti_driver.base import files\nprint('x')\nos.write(1, b'y')\n"
        "with files.outputs(args.out) as (o,): o.write_text(sys.stdin.read() if sys.stdin else '-')"
    )
    step = [*driver, "bindings", f"--do=run {code}", f"--out={tmp_path / 'out' / 'file'}"]
    subprocess.run(["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh", *step], check=True)
    assert (tmp_path / "out" / "file").read_text(encoding="utf-8") == "-"


def test_ways_to_end_the_process(attempt: Attempt, tmp_path: Path) -> None:
    (tmp_path / "spec.json").write_text('{"label": "//pkg:m"}', encoding="utf-8")
    fake = f"--out={tmp_path / 'out' / 'file'}"
    code, text = attempt("import ctypes; ctypes.CDLL(None)._exit(0)", fake)
    assert code == 1 and text.startswith("the process that ran this step ended itself with")
    code, text = attempt("import os; os._exit(0)", fake)
    assert code == 1 and "the model ends the process that builds it, with os._exit(0):" in text
    code, text = attempt("import sys; sys.exit(0)", fake)
    assert code == 1 and "the model ends the process that builds it, with sys.exit(0):" in text
    code, text = attempt("import os; os.kill(os.getpid(), 9)", fake)
    assert code == 137 and "ended by SIGKILL. As a rule, the machine or the container" in text
    code, text = attempt("import os; os.kill(os.getpid(), 40)", fake)
    assert code == 168 and "the driver's process was ended by signal 40" in text
    assert list((tmp_path / "out").iterdir()) == []


@pytest.mark.parametrize("mode", ["auto", "required"])
def test_a_kernel_that_cannot(driver: list[str], tmp_path: Path, mode: str) -> None:
    """The barrier is told to find nothing, as on an old kernel."""
    barrier = tmp_path / "driver" / "aoti_driver" / "process" / "barrier.py"
    text = barrier.read_text(encoding="utf-8")
    barrier.unlink()
    barrier.write_text(
        f"{text}\nlandlock.version = lambda: 0\nseccomp.restrict = lambda _: False\n"
        "_own_network = lambda: False\n",
        encoding="utf-8",
    )
    hello = request("run print('hello')")
    hello["arguments"].append("--source=m.py=/m.py")
    first, second = talk([*driver, f"--barrier={mode}"], hello, hello)
    where = " See docs/reproducibility.md.\n"
    holes = (
        "files (the kernel has no Landlock, which is in Linux 5.13 and newer) and the network (the "
        "kernel refuses seccomp and user namespaces here)"
    )
    if mode == "auto":
        assert first["output"] == (
            f"hello\nrules_aoti: nothing keeps this step from {holes}. The build does not notice "
            f"if a model uses files that its target does not declare.{where}"
        )
        assert second["output"] == "hello\n"  # it is said once
    else:
        assert first["exitCode"] == second["exitCode"] == 1
        assert first["output"] == second["output"]
        assert first["output"] == (
            'the toolchain has barrier = "required", but nothing keeps this step from '
            f'{holes}. Build where the kernel can do it, or set barrier = "auto".{where}'
        )


@pytest.mark.parametrize("version", range(1, 7))
def test_older_kernels(attempt: Attempt, tmp_path: Path, version: int) -> None:
    if landlock.version() < version:
        pytest.fail(f"this kernel has version {landlock.version()} of Landlock")
    barrier = tmp_path / "driver" / "aoti_driver" / "process" / "barrier.py"
    text = barrier.read_text(encoding="utf-8")
    barrier.unlink()
    barrier.write_text(f"{text}\nlandlock.version = lambda: {version}\n", encoding="utf-8")
    (tmp_path / "secret").write_text("secret", encoding="utf-8")
    code = (
        "import shutil, tempfile\nfrom pathlib import Path\nfrom aoti_driver.base import files\n"
        "with files.outputs(args.out) as (o,):\n"
        " (Path(tempfile.mkdtemp()) / 'x').write_text('x')\n o.write_text('x')"
    )
    assert attempt(code, f"--out={tmp_path / 'out' / 'file'}") == (0, "")
    assert refused(attempt(f"open({str(tmp_path / 'secret')!r})"))


ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7, "i386": 0x40000003}


def verdict(code: bytes, machine: str, number: int, first: int = 0) -> str:
    """What the kernel does with a system call, by the filter's program."""
    data = struct.pack("<IIQ6Q", number, ARCHITECTURES[machine], 0, first, *[0] * 5)
    at = loaded = 0
    while True:
        kind, when_true, when_false, value = struct.unpack_from("<HBBI", code, at * 8)
        at += 1
        if kind == 0x20:
            (loaded,) = struct.unpack_from("<I", data, value)
        elif kind == 0x06:
            return {0x7FFF0000: "allowed"}.get(value) or errno.errorcode[value & 0xFFFF]
        else:
            at += (
                when_true if (loaded == value if kind == 0x15 else loaded >= value) else when_false
            )


@pytest.mark.parametrize(
    ("machine", "socket", "socketpair", "kill", "read"),
    [("x86_64", 41, 53, 62, 0), ("aarch64", 198, 199, 129, 63)],
)
def test_the_filter(machine: str, socket: int, socketpair: int, kill: int, read: int) -> None:
    """Also of the CPU that is not at hand."""
    group = -4 & 0xFFFFFFFF
    code = seccomp.program(machine, [7, group])
    assert verdict(code, machine, socket) == "EACCES"
    assert verdict(code, machine, socketpair) == verdict(code, machine, read) == "allowed"
    assert {verdict(code, machine, kill, p) for p in (7, group, 0xFFFFFFFF)} == {"EACCES"}
    assert verdict(code, machine, kill, 8) == verdict(code, machine, kill, 0) == "allowed"
    assert verdict(code, "i386", read) == "ENOSYS"
    assert verdict(code, machine, 0x40000000 | read) == "ENOSYS"


def test_switched_off(attempt: Attempt, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("seen", encoding="utf-8")
    code = f"print(open({str(tmp_path / 'secret')!r}).read())"
    assert attempt(code, options=["--barrier=off"]) == (0, "seen\n")


@pytest.mark.parametrize(
    ("limit", "message"), [("fsize", "ulimit -f"), ("as", "no memory is left")]
)
def test_limits(driver: list[str], tmp_path: Path, limit: str, message: str) -> None:
    do = {
        "fsize": "from aoti_driver.base import files\n"
        "with files.outputs(args.out) as (o,): o.write_bytes(bytes(1 << 22))",
        "as": "bytearray(1 << 40)",
    }[limit]
    number = {"fsize": "RLIMIT_FSIZE", "as": "RLIMIT_AS"}[limit]
    limited = f"import resource; resource.setrlimit(resource.{number}, (1 << 20, 1 << 20))\n"
    code = f"run {limited if limit == 'fsize' else ''}{do}"
    out = f"--out={tmp_path / 'out' / 'file'}"
    (answer,) = talk(driver, {"arguments": ["bindings", f"--do={code}", out]})
    assert answer["exitCode"] == 1 and message in answer["output"], answer["output"]
    assert "report it" not in answer["output"]
    assert os.listdir(tmp_path / "out") == []


def test_a_full_disk(driver: list[str]) -> None:
    (answer,) = talk(driver, request("run open('/dev/full', 'w').write('x' * 99999)"))
    assert answer["exitCode"] == 1
    assert answer["output"] == "a file cannot be written or read: the disk is full\n"


MODEL = """
import os, socket, sys, torch

class Module(torch.nn.Module):
    def forward(self, x):
        {forward}
        return x + 1

def build():
    {build}
    return Module()
"""


def test_what_a_model_is_told(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("secret", encoding="utf-8")
    models = [
        {"build": f"open({str(secret)!r})"},
        {"build": f"os.listdir({str(tmp_path)!r})"},
        {"build": "socket.create_connection(('10.0.0.1', 80))"},
        {"build": "socket.getaddrinfo('example.com', 80)"},
        {"build": "os._exit(0)"},
        {"forward": "sys.exit(0)"},
        {"forward": f"open({str(secret)!r})"},
    ]
    spec: dict[str, object] = {
        "label": "//pkg:m",
        "name": "m",
        "entry_point": "pkg.m:build",
        "inputs": {"x": "float32[4]"},
        "sample_inputs": None,
        "dynamic_dims": {},
        "strict": False,
        "decompositions": [],
        "method": None,
    }
    (tmp_path / "spec.json").write_text(json.dumps(spec), encoding="utf-8")
    outs = [f"--out_{n}={tmp_path / 'out' / n}" for n in ("graph", "weights", "manifest")]
    requests = []
    for i, lines in enumerate(models):
        (tmp_path / f"m{i}.py").write_text(
            MODEL.format(**{"build": "", "forward": "", **lines}), encoding="utf-8"
        )
        requests.append(
            {
                "arguments": [
                    "export",
                    f"--spec={tmp_path / 'spec.json'}",
                    f"--source=_main/pkg/m.py={tmp_path / f'm{i}.py'}",
                    "--import_root=_main",
                    *outs,
                ]
            }
        )
    driver = [sys.executable, "-I", "-S", str(DRIVER / "main.py"), f"--site={SITE}"]
    answers = [a["output"] for a in talk(driver, *requests)]
    build = '//pkg:m: entry_point "pkg.m:build": it failed:'
    declare = "Add it to the data of the py_library that reads it, or to weights:\n  pkg/m.py:"
    assert answers[0].startswith(
        f'{build} it reads the file "{secret}", which "module" does not declare. {declare}10 in'
    )
    assert f'it reads the file "{tmp_path}", which "module" does not declare' in answers[1]
    for answer in answers[2:4]:
        assert answer.startswith(f"{build} it asks the network, which no step of a build reaches. ")
        assert "repository rule (http_file), and add it to weights or to the data of" in answer
    assert answers[4] == (
        f"{build}\n  pkg/m.py:10 in build\n    os._exit(0)\n"
        "it ends the process that builds the model (os._exit(0)): remove that call\n"
    )
    assert answers[5].startswith("//pkg:m: forward() fails") and answers[5].endswith(
        ":\n  pkg/m.py:6 in forward\n    sys.exit(0)\n"
        "it ends the process that builds the model (sys.exit(0)): remove that call\n"
    )
    assert answers[6].startswith("//pkg:m: forward() fails")
    assert (
        f'it reads the file "{secret}", which "module" does not declare. {declare}6' in answers[6]
    )
    assert list((tmp_path / "out").iterdir()) == []
