"""A remote cache for Bazel, in a folder: the least that its HTTP protocol asks for."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


@contextmanager
def serve(folder: Path) -> Iterator[str]:
    """Serves the folder on a free port of this machine; yields the address."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            path = self._path()
            if not path.is_file():
                self.send_response(404)
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            with path.open("rb") as file:
                self.send_response(200)
                self.send_header("Content-Length", str(path.stat().st_size))
                self.end_headers()
                shutil.copyfileobj(file, self.wfile)

        def do_PUT(self) -> None:
            path = self._path()
            path.parent.mkdir(parents=True, exist_ok=True)
            left = int(self.headers["Content-Length"])
            partial = path.with_name(f"{path.name}.{threading.get_ident()}")
            with partial.open("wb") as file:
                while left:
                    data = self.rfile.read(min(left, 1 << 20))
                    if not data:
                        break
                    file.write(data)
                    left -= len(data)
            if left:
                partial.unlink()  # the client went away
                return
            partial.replace(path)
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

        def _path(self) -> Path:
            # "/ac/DIGEST" or "/cas/DIGEST"
            kind, digest = self.path.strip("/").split("/")
            return folder / kind / digest

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()
