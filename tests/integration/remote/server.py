"""A remote execution server for one test: buildbox-casd, whose actions run in bubblewrap.

An action sees its inputs and, read-only, the machine's C and C++ toolchain: /usr without any
Python. It has no network, no home folder and none of the server's variables. nginx stands in front
of casd, which speaks no version of the API that is older than 2.1 and which Bazel 7 refuses for
that: nginx answers that one question itself.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

JOBS = 2
_START_S = 30
_STOP_S = 20
# What the store grows to with one model, and some more: 2 GB of it are torch, packed and unpacked.
_NEEDED_BYTES = 4 * 1000**3

# What an action has of the machine. Python is not part of a C++ toolchain: an action that needs one
# declares it. An empty folder takes the place of each that could serve by accident.
_IMAGE = ("/usr", "/bin", "/lib", "/lib64", "/etc/alternatives", "/etc/ld.so.cache")
_EMPTY = ("/usr/local", "/usr/lib/python3", "/usr/lib/python3.*", "/usr/share/python3")

_NGINX = """\
daemon off;
# One process, whose user is that of the test.
master_process off;
pid {scratch}/nginx.pid;
error_log {scratch}/nginx.log warn;
events {{ worker_connections 4096; }}
http {{
  access_log off;
  client_body_temp_path {scratch}/body;
  proxy_temp_path {scratch}/proxy;
  fastcgi_temp_path {scratch}/fastcgi;
  uwsgi_temp_path {scratch}/uwsgi;
  scgi_temp_path {scratch}/scgi;
  upstream casd {{ server 127.0.0.1:{casd}; keepalive 64; keepalive_requests 1000000; }}
  server {{
    listen 127.0.0.1:{port} http2;
    http2_max_concurrent_streams 512; http2_body_preread_size 1m;
    keepalive_requests 1000000; keepalive_timeout 1h;
    client_max_body_size 0; client_body_timeout 10m; send_timeout 10m;
    # As long as an action that says nothing may take.
    grpc_read_timeout 30m; grpc_send_timeout 10m; grpc_buffer_size 256k;
    location / {{ grpc_pass grpc://casd; }}
    location = /build.bazel.remote.execution.v2.Capabilities/GetCapabilities {{
      # A redirect to a file makes a GET of the POST, which a file can answer.
      error_page 418 =200 /capabilities;
      return 418;
    }}
    location = /capabilities {{
      internal;
      root {scratch};
      types {{ }} default_type application/grpc;
      add_trailer grpc-status 0 always;
    }}
  }}
}}
"""


def _varint(number: int, value: int) -> bytes:
    """A field of a protocol buffer message; all numbers here are below 128."""
    return bytes([number << 3, value])


def _message(number: int, *fields: bytes) -> bytes:
    content = b"".join(fields)
    return bytes([number << 3 | 2, len(content)]) + content


def capabilities() -> bytes:
    """ServerCapabilities of build.bazel.remote.execution.v2, as the body of a gRPC answer."""
    sha256, allowed = 1, 2
    message = b"".join(
        [
            _message(  # cache_capabilities
                1,
                _message(1, bytes([sha256])),  # digest_functions
                _message(2, _varint(1, True)),  # action_cache_update_capabilities
                _varint(5, allowed),  # symlink_absolute_path_strategy
            ),
            _message(  # execution_capabilities
                2,
                _varint(1, sha256),  # digest_function
                _varint(2, True),  # exec_enabled
                _message(5, bytes([sha256])),  # digest_functions
            ),
            _message(4, _varint(1, 2)),  # low_api_version: 2.0
            _message(5, _varint(1, 2), _varint(2, 12)),  # high_api_version: 2.12
        ]
    )
    uncompressed = b"\0"
    return uncompressed + len(message).to_bytes(4, "big") + message


def programs() -> Path:
    """The folder with the server's programs, in the runfiles of a test."""
    return Path(os.environ["TEST_SRCDIR"], os.environ["BUILDBOX"]).parent


def _free_ports() -> tuple[int, int]:
    with socket.socket() as one, socket.socket() as other:
        one.bind(("127.0.0.1", 0))
        other.bind(("127.0.0.1", 0))
        return one.getsockname()[1], other.getsockname()[1]


def _descendants(pid: int) -> Iterator[int]:
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):  # it ended meanwhile
            for child in task.read_text(encoding="ascii").split():
                yield int(child)
                yield from _descendants(int(child))


def _command(pid: int) -> list[str]:
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_text(errors="replace").split("\0")
    return [""]


@dataclass
class Server:
    """The server, as a context manager. `programs` is the folder with its programs."""

    programs: Path
    scratch: Path
    _processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    _ports: tuple[int, int] = field(default_factory=_free_ports)

    @property
    def address(self) -> str:
        """For --remote_executor and --remote_cache."""
        return f"grpc://127.0.0.1:{self._ports[0]}"

    def __enter__(self) -> Self:
        self._unmount()  # what a run that was killed left
        shutil.rmtree(self.scratch, ignore_errors=True)
        (self.scratch / "empty").mkdir(parents=True)
        if (free := shutil.disk_usage(self.scratch).free) < _NEEDED_BYTES:
            raise RuntimeError(
                f"the server's store needs {_NEEDED_BYTES / 1000**3:.0f} GB of disk space, but "
                f"{self.scratch} has {free / 1000**3:.1f} GB; free some"
            )
        (self.scratch / "capabilities").write_bytes(capabilities())
        port, casd = self._ports
        config = self.scratch / "nginx.conf"
        config.write_text(_NGINX.format(scratch=self.scratch, port=port, casd=casd), "utf-8")
        try:
            self._start("nginx", ["-c", str(config), "-p", str(self.scratch)], port)
            self.start_casd()
        except BaseException:
            self._stop_all()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop_all()
        shutil.rmtree(self.store, ignore_errors=True)  # the logs stay

    def start_casd(self) -> None:
        """Starts casd with what is in the store."""
        port, root = self._ports[1], Path("/")
        image = [(Path(path).resolve(), Path(path)) for path in _IMAGE]
        for pattern in _EMPTY:
            image += [(self.scratch / "empty", path) for path in root.glob(pattern[1:])]
        self._start(
            "buildbox-casd",
            [
                f"--bind=127.0.0.1:{port}",
                f"--buildbox-run={self._runner}",
                *(f"--runner-arg=--ro-bind-mount={here}:{there}" for here, there in image),
                f"--jobs={JOBS}",
                # It expires what it holds as soon as the disk has less than this to spare (2 GB
                # unless told), and a build whose files have gone fails or waits.
                "--reserved=1M",
                "--protect-session-blobs",
                "--quota-high=30G",
                f"--shutdown-deadline={_STOP_S // 2}",
                "--log-level=info",
                str(self.store),
            ],
            port,
        )

    def stop_casd(self, how: signal.Signals = signal.SIGTERM) -> None:
        """Ends casd and the actions that it runs."""
        process = self._processes.pop("buildbox-casd")
        children = list(_descendants(process.pid))
        process.send_signal(how)
        try:
            process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        for child in children:
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
        self._unmount()

    @property
    def _runner(self) -> Path:
        return self.programs / "buildbox-run"

    @property
    def store(self) -> Path:
        return self.scratch / "store"

    def blob(self, digest: str) -> Path:
        """The file in which casd keeps the content of a SHA-256."""
        return self.store / "cas" / "objects" / digest[:2] / digest[2:]

    def forget(self, action: str) -> None:
        """Forgets an action's result; the files that it wrote stay."""
        (self.store / "actioncache" / "objects" / action[:2] / action[2:]).unlink(missing_ok=True)

    def running(self, word: str) -> list[int]:
        """The processes of actions that have `word` in their command line."""
        own = str(self.programs)  # bubblewrap has the action's arguments too
        commands = {pid: _command(pid) for pid in self._workers()}
        return [
            pid
            for pid, (program, *arguments) in commands.items()
            if not program.startswith(own) and any(word in argument for argument in arguments)
        ]

    def runner_of(self, process: int) -> int:
        """The process of the server's that runs this one."""
        runners = [pid for pid in self._workers() if _command(pid)[:1] == [str(self._runner)]]
        return next(pid for pid in runners if process in _descendants(pid))

    def _workers(self) -> Iterator[int]:
        return _descendants(self._processes["buildbox-casd"].pid)

    def _start(self, name: str, arguments: list[str], port: int) -> None:
        with self._log(name).open("ab") as log:
            self._processes[name] = process = subprocess.Popen(
                [self.programs / name, *arguments],
                cwd=self.scratch,
                env={"PATH": f"{self.programs}:/usr/sbin:/usr/bin:/sbin:/bin"},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        deadline = time.monotonic() + _START_S
        while time.monotonic() < deadline and process.poll() is None:
            with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
                return
            time.sleep(0.05)
        raise RuntimeError(f"{name} did not start; its log ends with:\n{self._log_tail(name)}")

    def _stop_all(self) -> None:
        if "buildbox-casd" in self._processes:
            self.stop_casd()
        for process in self._processes.values():
            process.kill()
            process.wait()
        self._processes.clear()

    def _unmount(self) -> None:
        """An action that was killed leaves its view of the store mounted."""
        unmount = ["fusermount3", "-uz"] if shutil.which("fusermount3") else ["umount", "--lazy"]
        mounts = Path("/proc/self/mounts").read_text(encoding="utf-8").splitlines()
        for folder in [line.split()[1] for line in mounts]:
            if folder.startswith(f"{self.scratch}/"):
                subprocess.run([*unmount, folder], check=False, capture_output=True)

    def _log(self, name: str) -> Path:
        return self.scratch / f"{name}.log"

    def _log_tail(self, name: str) -> str:
        text = self._log(name).read_text(encoding="utf-8", errors="replace")
        return "\n".join(text.splitlines()[-40:])
