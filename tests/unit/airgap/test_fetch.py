"""Downloads: retried, resumed, and never used with a wrong hash."""

from __future__ import annotations

import hashlib
import threading
import urllib.request
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from airgap.base import AirgapError
from airgap.fetch import ATTEMPTS, Fetcher, NotFoundError

BODY = bytes(range(256)) * 4000
SHA256 = hashlib.sha256(BODY).hexdigest()
Answer = Callable[[BaseHTTPRequestHandler], None]


def whole(request: BaseHTTPRequestHandler) -> None:
    request.send_response(200)
    request.send_header("Content-Length", str(len(BODY)))
    request.end_headers()
    request.wfile.write(BODY)


def cut_off(request: BaseHTTPRequestHandler) -> None:
    request.send_response(200)
    request.send_header("Content-Length", str(len(BODY)))
    request.end_headers()
    request.wfile.write(BODY[:1000])


def rest(request: BaseHTTPRequestHandler) -> None:
    start = int(request.headers["Range"].removeprefix("bytes=").rstrip("-"))
    request.send_response(206)
    request.send_header("Content-Length", str(len(BODY) - start))
    request.end_headers()
    request.wfile.write(BODY[start:])


def status(code: int) -> Answer:
    def answer(request: BaseHTTPRequestHandler) -> None:
        request.send_response(code)
        request.end_headers()

    return answer


class Server:
    """Gives the prepared answers in turn, and keeps what was asked."""

    def __init__(self) -> None:
        self.answers: list[Answer] = []
        self.ranges: list[str | None] = []
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                server.ranges.append(self.headers.get("Range"))
                server.answers.pop(0)(self)

            def log_message(self, format: str, *args: object) -> None:
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}/file"
        threading.Thread(target=self.http.serve_forever, daemon=True).start()


@pytest.fixture
def server() -> Iterator[Server]:
    it = Server()
    yield it
    it.http.shutdown()


@pytest.fixture
def fetcher(tmp_path: Path) -> Fetcher:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    return Fetcher(tmp_path, opener=opener, sleep=lambda _: None)


def test_second_time_comes_from_the_cache(server: Server, fetcher: Fetcher) -> None:
    server.answers = [whole]
    file = fetcher.file(server.url, SHA256)
    assert file.read_bytes() == BODY
    assert fetcher.file(server.url, SHA256) == file
    assert len(server.ranges) == 1


def test_passing_faults_are_retried(server: Server, fetcher: Fetcher) -> None:
    server.answers = [status(503), status(429), whole]
    assert fetcher.file(server.url, SHA256).read_bytes() == BODY


def test_cut_off_download_is_resumed(server: Server, fetcher: Fetcher) -> None:
    server.answers = [cut_off, rest]
    assert fetcher.file(server.url, SHA256, len(BODY)).read_bytes() == BODY
    assert server.ranges == [None, "bytes=1000-"]


def test_what_a_killed_run_left_is_resumed(server: Server, fetcher: Fetcher) -> None:
    (fetcher.downloads / f"{SHA256}.part").write_bytes(BODY[:5000])
    server.answers = [rest]
    assert fetcher.file(server.url, SHA256).read_bytes() == BODY
    assert server.ranges == ["bytes=5000-"]


def test_server_without_ranges_starts_again(server: Server, fetcher: Fetcher) -> None:
    (fetcher.downloads / f"{SHA256}.part").write_bytes(BODY[:5000])
    server.answers = [whole]
    assert fetcher.file(server.url, SHA256).read_bytes() == BODY


def test_wrong_remainder_is_fetched_anew(server: Server, fetcher: Fetcher) -> None:
    (fetcher.downloads / f"{SHA256}.part").write_bytes(b"?" * 5000)
    server.answers = [rest, whole]
    assert fetcher.file(server.url, SHA256).read_bytes() == BODY


def test_damaged_cache_is_fetched_anew(server: Server, fetcher: Fetcher) -> None:
    (fetcher.downloads / SHA256).write_bytes(BODY[:-1])
    server.answers = [whole]
    assert fetcher.file(server.url, SHA256).read_bytes() == BODY


def test_wrong_hash_is_fatal_and_leaves_nothing(server: Server, fetcher: Fetcher) -> None:
    server.answers = [whole]
    with pytest.raises(AirgapError, match=f"SHA-256 is {SHA256}, must be {'0' * 64}"):
        fetcher.file(server.url, "0" * 64)
    assert list(fetcher.downloads.iterdir()) == []


def test_missing_file_is_not_retried(server: Server, fetcher: Fetcher) -> None:
    server.answers = [status(404)]
    with pytest.raises(NotFoundError):
        fetcher.file(server.url, SHA256)
    assert len(server.ranges) == 1


def test_refusal_is_not_retried(server: Server, fetcher: Fetcher) -> None:
    server.answers = [status(403)]
    with pytest.raises(AirgapError, match="403"):
        fetcher.file(server.url, SHA256)
    assert len(server.ranges) == 1


def test_gives_up_in_the_end(server: Server, fetcher: Fetcher) -> None:
    server.answers = [status(500)] * (ATTEMPTS + 1)
    with pytest.raises(AirgapError, match=f"gave up after {ATTEMPTS}"):
        fetcher.text(server.url)
    assert len(server.ranges) == ATTEMPTS
