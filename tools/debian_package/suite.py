"""Files out of a Debian suite's packages, checked by the suite's signed index.

The index says which version there is and what its hash is: a mirror keeps only the newest.
"""

from __future__ import annotations

import io
import shutil
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from airgap.base import AirgapError
from airgap.deb import data_tar
from airgap.debian import Package, load_index, mirror
from airgap.fetch import Fetcher


@dataclass(frozen=True)
class Suite:
    """The packages of one suite on one mirror, and where to download them to."""

    name: str
    base: str
    index: Mapping[str, Package]
    fetcher: Fetcher

    @classmethod
    def load(cls, name: str, downloads: Path) -> Suite:
        base, fetcher = mirror(), Fetcher(downloads)
        return cls(name, base, load_index(fetcher, base, name), fetcher)

    def deb(self, package: str) -> Path:
        """The file of a package."""
        if package not in self.index:
            raise AirgapError(
                f"Debian {self.name} has no package {package}: another suite is needed"
            )
        wanted = self.index[package]
        return self.fetcher.file(f"{self.base}/{wanted.filename}", wanted.sha256, wanted.size)


def extract(deb: Path, prefix: str, target: Path, keep: Sequence[str] = ()) -> list[str]:
    """Unpacks what lies below `prefix`, flat; only the names in `keep`, if there are any."""
    found = []
    with tarfile.open(fileobj=io.BytesIO(data_tar(deb))) as tar:
        for member in tar:
            folder, _, name = member.name.removeprefix("./").rpartition("/")
            if folder != prefix or (keep and name not in keep):
                continue
            content = tar.extractfile(member) if member.isfile() or member.issym() else None
            if content is None:
                continue
            target.mkdir(parents=True, exist_ok=True)
            with content, (target / name).open("wb") as out:
                shutil.copyfileobj(content, out)
            (target / name).chmod(0o755)
            found.append(name)
    return found
