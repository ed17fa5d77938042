"""Makes a lock with hashes from a list of requirements, with nothing but the machine's pip.

usage: python tools/lock/lock.py [--also NAME==VERSION] [--without NAME] REQUIREMENTS.in LOCK.txt

pip resolves for the Python that runs this. The hashes of the same versions' wheels for other
Pythons and Linux machines (x86_64, aarch64) are taken from the package index: the lock installs
there too. `--also` admits a further build of a version, such as torch==2.13.0+cpu, that pip can
download. `--without` leaves a package out, and what only that package needs.
"""

from __future__ import annotations

import argparse
import hashlib
import html
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Collection, Iterator
from pathlib import Path
from urllib.parse import unquote

PYTHONS = ("cp310", "cp311", "cp312", "cp313", "cp314")
MACHINES = ("x86_64", "aarch64")
ATTEMPTS = 5


def pip(*arguments: str, plain_index: bool = False) -> str:
    """Runs pip. `plain_index` hides the machine's extra wheels, so that the lock fits elsewhere."""
    environment = dict(os.environ)
    if plain_index:
        environment.update(PIP_CONFIG_FILE=os.devnull, PIP_FIND_LINKS="", PIP_EXTRA_INDEX_URL="")
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", *arguments]
    for attempt in range(1, ATTEMPTS + 1):
        result = subprocess.run(command, capture_output=True, text=True, env=environment)
        if result.returncode == 0:
            return result.stdout
        time.sleep(attempt)
    sys.exit(f"{' '.join(command)}:\n{result.stdout}{result.stderr}")


def resolve(requirements: Path, without: Collection[str] = ()) -> dict[str, str]:
    """Versions by name, of the requirements and all that they need."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        pip(
            *("install", "--dry-run", "--quiet", "--ignore-installed", "--only-binary=:all:"),
            *(
                "--use-feature=fast-deps",
                "--report",
                str(report),
                "--requirement",
                str(requirements),
            ),
            plain_index=True,
        )
        installs = json.loads(report.read_text(encoding="utf-8"))["install"]
    packages = {normalize(install["metadata"]["name"]): install for install in installs}
    todo = [name for name, install in packages.items() if install["requested"]]
    needed: set[str] = set()
    while todo:
        name = todo.pop()
        if name in packages and name not in needed and name not in without:
            needed.add(name)
            requires = packages[name]["metadata"].get("requires_dist", [])
            todo += [
                normalize(re.split(r"[^\w.-]", require, maxsplit=1)[0]) for require in requires
            ]
    # The file's name has the version as the index spells it.
    return {name: _version(packages[name]["download_info"]["url"]) for name in needed}


def _version(url: str) -> str:
    return unquote(url.rsplit("/", 1)[1]).split("-")[1]


def normalize(name: str) -> str:
    """PEP 503: the one spelling of a package's name."""
    return re.sub(r"[-_.]+", "-", name).lower()


def index_url() -> str:
    """The index that pip uses: from its settings, or its own default."""
    for line in pip("config", "list").splitlines():
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
    """Is this a wheel of the version, for a Linux and a Python that we support?"""
    if not file.endswith(".whl") or file.split("-")[1] != version:
        return False
    python, abi, platform = file.removesuffix(".whl").split("-")[-3:]
    if platform == "any":
        return True
    if "manylinux" not in platform or not platform.endswith(MACHINES):
        return False
    return abi in ("abi3", "none") or (python in PYTHONS and abi == python)


def downloaded_hash(requirement: str) -> str:
    """The SHA-256 of the wheel that pip downloads for a requirement."""
    with tempfile.TemporaryDirectory() as folder:
        pip("download", "--quiet", "--no-deps", "--only-binary=:all:", "-d", folder, requirement)
        (wheel,) = Path(folder).iterdir()
        return hashlib.sha256(wheel.read_bytes()).hexdigest()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--also", action="append", default=[], metavar="NAME==VERSION")
    parser.add_argument("--without", action="append", default=[], metavar="NAME", type=normalize)
    parser.add_argument("requirements", type=Path)
    parser.add_argument("lock", type=Path)
    args = parser.parse_args()

    index = index_url()
    command = " ".join(["python", "tools/lock/lock.py", *sys.argv[1:]])
    lines = [f"# Made by: {command}"]
    for name, version in sorted(resolve(args.requirements, args.without).items()):
        hashes = {
            digest for file, digest in links(read_page(f"{index}/{name}/")) if fits(file, version)
        }
        for variant in args.also:
            if variant.startswith(f"{name}=={version}+"):
                hashes.add(downloaded_hash(variant))
                lines.append(
                    f"# The hashes of {variant} and of the index's builds: pip takes either."
                )
        if not hashes:
            sys.exit(f"{name}=={version}: the index has no wheel with a hash")
        lines.append(
            " \\\n".join(
                [f"{name}=={version}", *(f"    --hash=sha256:{h}" for h in sorted(hashes))]
            )
        )
    args.lock.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
