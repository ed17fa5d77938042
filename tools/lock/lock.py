"""Makes a lock with hashes from a list of requirements, for all Pythons that torch has wheels for.

usage: python tools/lock/lock.py [--oldest 3.N] [--wheels FILE] [--without NAME]
           REQUIREMENTS.in LOCK.txt

uv resolves (`pip install uv`), for Linux and every Python from the oldest on: where Pythons need
different versions, the lock has both with a marker. What an existing lock pins stays if it can. The
hashes are those of the versions' wheels for these Pythons on x86_64 and aarch64, from the package
index that pip uses.

`--wheels` admits further builds of a version, such as torch==2.13.0+cpu: a file in sha256sum's
format. `--without` leaves a package out, and what only that package needs.
"""

from __future__ import annotations

import argparse
import html
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

PYTHONS = ("cp310", "cp311", "cp312", "cp313", "cp314")
MACHINES = ("x86_64", "aarch64")
ATTEMPTS = 5

_PIN = re.compile(r"([\w.-]+)(?:\[[^\]]*\])?==([^\s;]+)\s*(?:;\s*([^#]*?))?\s*(?:--hash|#|$)")


@dataclass(frozen=True)
class Pin:
    """One version of a package, and the Pythons that it is for."""

    name: str
    version: str
    marker: str = ""

    @property
    def line(self) -> str:
        return f"{self.name}=={self.version}" + (f" ; {self.marker}" if self.marker else "")


def run(*command: str) -> str:
    """Runs a program, again if it fails: an index may be out of reach for a moment."""
    environment = dict(os.environ)
    if certificates := environment.get("PIP_CERT"):
        environment.setdefault("SSL_CERT_FILE", certificates)
    for attempt in range(1, ATTEMPTS + 1):
        result = subprocess.run(command, capture_output=True, text=True, env=environment)
        if result.returncode == 0:
            return result.stdout
        time.sleep(attempt)
    sys.exit(f"{' '.join(command)}:\n{result.stdout}{result.stderr}")


def resolve(
    requirements: Path, index: str, oldest: str, without: Collection[str] = (), lock: str = ""
) -> list[Pin]:
    """Versions of the requirements and of all that they need. `lock` is what held so far."""
    uv = shutil.which("uv") or shutil.which("uv", path=str(Path(sys.executable).parent))
    if not uv:
        sys.exit("uv is not on PATH, which resolves for several Pythons: python -m pip install uv")
    with tempfile.TemporaryDirectory() as folder:
        overrides, output = Path(folder, "overrides.txt"), Path(folder, "output.txt")
        overrides.write_text("".join(f'{name} ; python_version < "0"\n' for name in without))
        output.write_text("".join(f"{pin.line}\n" for pin in read_pins(lock)))
        run(
            *(uv, "pip", "compile", "--quiet", "--universal", "--no-config", "--no-header"),
            *("--no-annotate", "--only-binary=:all:", f"--python-version={oldest}"),
            *(f"--default-index={index}", f"--override={overrides}"),
            *(f"--output-file={output}", str(requirements)),
        )
        return read_pins(output.read_text())


def read_pins(text: str) -> list[Pin]:
    """The pins of a lock that hold on Linux."""
    pins = []
    for line in text.replace("\\\n", " ").splitlines():
        if not (match := _PIN.match(line)):
            continue
        marker = match[3] or ""
        if re.search(r"sys_platform == '(?!linux)", marker) and " or " not in marker:
            continue
        pins.append(Pin(normalize(match[1]), match[2], python_marker(marker)))
    return pins


def python_marker(marker: str) -> str:
    """What a marker says of the Python: a lock is for Linux, and for the machines of its hashes."""
    terms = re.findall(r"python_full_version (?:<|>=) '[\d.]+'", marker)
    newest = f"3.{int(PYTHONS[-1].removeprefix('cp3')) + 1}"
    return " and ".join(term for term in terms if term != f"python_full_version < '{newest}'")


def normalize(name: str) -> str:
    """PEP 503: the one spelling of a package's name."""
    return re.sub(r"[-_.]+", "-", name).lower()


def index_url() -> str:
    """The index that pip uses: from its settings, or its own default."""
    for line in run(sys.executable, "-m", "pip", "config", "list").splitlines():
        match = re.fullmatch(r"(?:global|install|:env:)\.index-url='(.*)'", line)
        if match:
            return match[1].rstrip("/")
    program = "from pip._internal.models.index import PyPI; print(PyPI.simple_url)"
    return subprocess.check_output([sys.executable, "-c", program], text=True).strip().rstrip("/")


def links(page: str) -> Iterator[tuple[str, str]]:
    """File names with their SHA-256, from a page of the index."""
    for link in re.findall(r'<a\s[^>]*href="([^"]*)"', page):
        url, _, fragment = html.unescape(link).partition("#")
        algorithm, _, digest = fragment.partition("=")
        if algorithm == "sha256":
            yield unquote(url.rsplit("/", 1)[1]), digest


def read_page(url: str) -> str:
    """A page of the index as HTML."""
    request = urllib.request.Request(url, headers={"Accept": "text/html"})
    for attempt in range(1, ATTEMPTS + 1):
        try:
            with urllib.request.urlopen(request, timeout=60) as response:
                content: bytes = response.read()
                return content.decode()
        except (OSError, urllib.error.URLError) as error:
            if attempt == ATTEMPTS:
                sys.exit(f"{url}: {error}")
            time.sleep(attempt)
    raise AssertionError("unreachable")


def fits(file: str, version: str) -> bool:
    """Whether this is a wheel of the version, for a Linux and a Python that are supported."""
    if not file.endswith(".whl") or file.split("-")[1] != version:
        return False
    python, abi, platform = file.removesuffix(".whl").split("-")[-3:]
    if platform == "any":
        return True
    if "manylinux" not in platform or not platform.endswith(MACHINES):
        return False
    return abi in ("abi3", "none") or (python in PYTHONS and abi == python)


def listed_hashes(text: str, pin: Pin) -> set[str]:
    """The hashes of a list in sha256sum's format that are of builds of a version: `2.13.0+cpu`."""
    found = set()
    for line in text.splitlines():
        digest, _, file = line.partition("  ")
        name, _, rest = file.strip().partition("-")
        build = rest.partition("-")[0]
        if normalize(name) == pin.name and build.partition("+")[0] == pin.version:
            if not fits(file.strip(), build):
                sys.exit(f"{file}: no wheel for a Python and a machine of this lock")
            found.add(digest)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--oldest", default="3.10", metavar="3.N", help="the oldest Python")
    parser.add_argument("--wheels", type=Path, help="further builds, in sha256sum's format")
    parser.add_argument("--without", action="append", default=[], metavar="NAME", type=normalize)
    parser.add_argument("requirements", type=Path)
    parser.add_argument("lock", type=Path)
    args = parser.parse_args()

    index = index_url()
    command = " ".join(["python", "tools/lock/lock.py", *sys.argv[1:]])
    lines = [f"# Made by: {command}"]
    further = args.wheels.read_text(encoding="utf-8") if args.wheels else ""
    before = args.lock.read_text(encoding="utf-8") if args.lock.exists() else ""
    pins = resolve(args.requirements, index, args.oldest, args.without, before)
    for pin in sorted(pins, key=lambda pin: (pin.name, pin.line)):
        hashes = {
            digest
            for file, digest in links(read_page(f"{index}/{pin.name}/"))
            if fits(file, pin.version)
        }
        if builds := listed_hashes(further, pin):
            hashes |= builds
            lines.append(f"# The hashes of the index's builds and of those in {args.wheels}.")
        if not hashes:
            sys.exit(f"{pin.line}: the index has no wheel with a hash")
        lines.append(" \\\n".join([pin.line, *(f"    --hash=sha256:{h}" for h in sorted(hashes))]))
    args.lock.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
