"""Downloads over HTTP: checked against a hash, retried, resumed."""

from __future__ import annotations

import http.client
import os
import re
import ssl
import subprocess
import time
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path
from typing import Callable, Optional, TypeVar

from .base import AirgapError, note
from .store import file_sha256
from .truststore import ca_bundle

ATTEMPTS = 7
TIMEOUT_S = 60
_BLOCK = 1 << 18
T = TypeVar("T")


class NotFoundError(AirgapError):
    """The server answered, and has no such file."""


def _apt_proxies() -> dict[str, str]:
    """The proxies that apt is set up with; they add to those of the environment."""
    try:
        dump = subprocess.run(["apt-config", "dump"], capture_output=True, text=True, check=False)
    except OSError:
        return {}
    found = re.findall(r'^Acquire::(https?)::Proxy "([^"]+)";', dump.stdout, re.MULTILINE | re.I)
    return {scheme.lower(): proxy for scheme, proxy in found if proxy != "DIRECT"}


def _system_opener() -> urllib.request.OpenerDirector:
    bundle = ca_bundle()
    context = ssl.create_default_context(cafile=str(bundle) if bundle else None)
    proxies = {**_apt_proxies(), **urllib.request.getproxies()}
    return urllib.request.build_opener(
        urllib.request.ProxyHandler(proxies), urllib.request.HTTPSHandler(context=context)
    )


@dataclass
class Fetcher:
    """Fetches files into `downloads`, each named by its SHA-256."""

    downloads: Path
    opener: urllib.request.OpenerDirector = field(default_factory=_system_opener)
    sleep: Callable[[float], None] = time.sleep

    def text(self, url: str) -> bytes:
        """A small file whose hash is not known in advance: the caller checks its signature."""

        def once() -> bytes:
            with self.opener.open(url, timeout=TIMEOUT_S) as answer:
                body: bytes = answer.read()
                return body

        return self._retry(url, once)

    def file(self, url: str, sha256: str, size: Optional[int] = None) -> Path:
        """Fetches `url` unless a file of that hash is here already. A wrong hash is fatal."""
        final = self.downloads / sha256
        if final.exists():
            if file_sha256(final) == sha256:
                return final
            final.unlink()  # a damaged disk or an edited cache: fetch it anew
        part = self.downloads / (sha256 + ".part")
        self.downloads.mkdir(parents=True, exist_ok=True)
        resumed = part.exists()
        self._retry(url, lambda: self._append(url, part, size))
        if file_sha256(part) != sha256 and resumed:
            part.unlink()  # what an earlier run left may be of another file
            self._retry(url, lambda: self._append(url, part, size))
        actual = file_sha256(part)
        if actual != sha256:
            part.unlink()
            raise AirgapError(f"{url}: SHA-256 is {actual}, must be {sha256}: not used")
        os.replace(part, final)
        return final

    def _append(self, url: str, part: Path, size: Optional[int]) -> None:
        have = part.stat().st_size if part.exists() else 0
        if size is not None and have >= size:
            return
        request = urllib.request.Request(url)
        if have:
            request.add_header("Range", f"bytes={have}-")
        try:
            answer = self.opener.open(request, timeout=TIMEOUT_S)
        except urllib.error.HTTPError as error:
            if error.code == 416 and have:  # nothing beyond what we have: let the hash decide
                return
            raise
        with answer, part.open("ab" if answer.getcode() == 206 else "wb") as out:
            expected = answer.headers.get("Content-Length")
            received = 0
            for block in iter(lambda: answer.read(_BLOCK), b""):
                out.write(block)
                received += len(block)
            if expected is not None and received < int(expected):
                raise http.client.IncompleteRead(b"", int(expected) - received)

    def _retry(self, url: str, action: Callable[[], T]) -> T:
        for attempt in range(1, ATTEMPTS + 1):
            try:
                return action()
            except urllib.error.HTTPError as error:
                if error.code == 404:
                    raise NotFoundError(f"{url}: the server has no such file") from error
                if error.code < 500 and error.code not in (408, 425, 429):
                    raise AirgapError(f"{url}: {error.code} {error.reason}") from error
                problem: Exception = error
            except (OSError, http.client.HTTPException) as error:  # URLError is an OSError
                problem = error
            if attempt < ATTEMPTS:
                if attempt > 1:  # a single fault is too common to be news
                    note(f"{url}: {problem}; trying again")
                self.sleep(min(2.0 ** (attempt - 1), 15.0))
        raise AirgapError(f"{url}: {problem}; gave up after {ATTEMPTS} attempts")
