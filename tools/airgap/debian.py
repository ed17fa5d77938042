"""Debian's package index: the machine's own mirror, its signature, what depends on what."""

from __future__ import annotations

import lzma
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from .base import AirgapError, note
from .fetch import Fetcher, NotFoundError

KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")

# Native libraries are followed through Depends. libssl and libre2 serve parts of gRPC that Bazel
# does not load; the rest are not libraries.
_LIBRARY = re.compile(r"(lib(?!.*-java).*\d(t64)?|zlib1g|libgcc-s1|libc6|libstdc\+\+6)")
_UNUSED = re.compile(r"libssl|libre2|gcc-.*-base|libc-gconv|libprotoc")


@dataclass(frozen=True)
class Package:
    """One entry of the index."""

    name: str
    version: str
    filename: str  # below the mirror
    size: int
    sha256: str
    depends: tuple[str, ...]  # first alternative of each
    provides: tuple[str, ...]


def mirror() -> str:
    """The Debian mirror of this machine's apt; works before any `apt-get update`."""
    named = os.environ.get("DEBIAN_MIRROR")
    if named:
        return named.rstrip("/")
    if not shutil.which("apt-get"):
        raise AirgapError("no apt-get on this machine: name a Debian mirror in DEBIAN_MIRROR")
    listing = subprocess.run(
        ["apt-get", "--print-uris", "update"], capture_output=True, text=True, check=False
    )
    found = re.findall(r"'([^']*/debian)/dists/", listing.stdout)
    if not found:
        raise AirgapError(
            "apt-get --print-uris update names no Debian mirror: "
            "set one up for apt, or name one in DEBIAN_MIRROR\n" + listing.stderr.strip()
        )
    return str(found[0])


def verified_release(in_release: bytes, keyring: Path = KEYRING) -> str:
    """The signed text of an InRelease file. Anything but a good signature is fatal."""
    gpgv = shutil.which("gpgv")
    if not gpgv:
        raise AirgapError("gpgv is missing, so Debian's packages can't be trusted: install gpgv")
    if not keyring.is_file():
        raise AirgapError(f"{keyring} is missing: install debian-archive-keyring")
    with tempfile.TemporaryDirectory() as scratch:
        signed = Path(scratch, "signed")
        run = subprocess.run(
            [gpgv, "--status-fd=1", f"--keyring={keyring}", f"--output={signed}", "-"],
            input=in_release,
            capture_output=True,
            check=False,
        )
        status = re.findall(r"^\[GNUPG:\] (\w+)", run.stdout.decode(errors="replace"), re.MULTILINE)
        # Several keys sign; an old keyring misses the newest, for which gpgv's exit status is an
        # error too. One good signature suffices, a bad one never does.
        bad = {"BADSIG", "EXPSIG", "EXPKEYSIG", "REVKEYSIG", "NODATA", "UNEXPECTED"} & set(status)
        if bad or "VALIDSIG" not in status or not signed.is_file():
            reason = run.stderr.decode(errors="replace").strip()
            raise AirgapError(
                f"the signature of Debian's InRelease is not good, so it is not used:\n{reason}\n"
                "If the keys are only too old: upgrade debian-archive-keyring"
            )
        # The text of the signature only: a forger may put lines around it.
        return signed.read_text()


def release_hashes(release: str) -> dict[str, str]:
    """SHA-256 by file name, from the text of a Release file."""
    found: dict[str, str] = {}
    inside = False
    for line in release.splitlines():
        if line.startswith(" "):
            if inside:
                sha256, _, name = line.split()
                found[name] = sha256
        else:
            inside = line.startswith("SHA256:")
    return found


def _names(relation: str) -> tuple[str, ...]:
    first = (entry.split("|")[0] for entry in relation.split(","))
    names = (re.split(r"[\s(:\[]", entry.strip(), maxsplit=1)[0] for entry in first)
    return tuple(name for name in names if name)


def parse_packages(text: str) -> Iterator[Package]:
    """The entries of a Packages file."""
    for paragraph in text.split("\n\n"):
        fields = dict(re.findall(r"^(\w[\w-]*): (.*)$", paragraph, re.MULTILINE))
        if "Package" in fields:
            yield Package(
                name=fields["Package"],
                version=fields["Version"],
                filename=fields["Filename"],
                size=int(fields["Size"]),
                sha256=fields["SHA256"],
                depends=_names(fields.get("Depends", "") + "," + fields.get("Pre-Depends", "")),
                provides=_names(fields.get("Provides", "")),
            )


def load_index(fetcher: Fetcher, base: str, suite: str) -> dict[str, Package]:
    """The packages of a suite's `main`, by name; the signature is checked on the way."""
    dist = f"{base}/dists/{suite}"
    release = verified_release(fetcher.text(f"{dist}/InRelease"))
    name = "main/binary-amd64/Packages.xz"
    sha256 = release_hashes(release).get(name)
    if sha256 is None:
        raise AirgapError(f"{dist}/InRelease lists no {name}")
    try:  # by hash: the mirror may be updated between the two downloads
        path = fetcher.file(f"{dist}/main/binary-amd64/by-hash/SHA256/{sha256}", sha256)
    except NotFoundError:
        path = fetcher.file(f"{dist}/{name}", sha256)
    text = lzma.decompress(path.read_bytes()).decode()
    return {entry.name: entry for entry in parse_packages(text)}


def closure(index: Mapping[str, Package], roots: Iterable[str]) -> dict[str, Package]:
    """The roots and every native library below them."""
    providers = {name: entry for entry in index.values() for name in entry.provides}
    found: dict[str, Package] = {}
    todo = list(roots)
    while todo:
        name = todo.pop()
        if name in found or _UNUSED.match(name):
            continue
        entry = index.get(name) or providers.get(name)
        if entry is None:
            note(f"Debian has no package {name}: going on without")
            continue
        found[entry.name] = entry
        todo += [dep for dep in entry.depends if dep not in found and _LIBRARY.fullmatch(dep)]
    return found
