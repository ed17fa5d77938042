"""Debian's index: unsigned data is refused, and dependencies are followed."""

from __future__ import annotations

import base64
import lzma
import subprocess
from pathlib import Path

import pytest
from airgap import debian
from airgap.base import AirgapError
from airgap.fetch import Fetcher, NotFoundError

# A throw-away key, and a text that it signed.
KEY = """\
mDMEXgvhABYJKwYBBAHaRw8BAQdABQ4qm3egM3VOTiknL9V7Tk6nctSGWsDE5rNYzHBo/CG0G05v
Ym9keSA8bm9ib2R5QGV4YW1wbGUub3JnPoiQBBMWCAA4FiEE18TLkFh16GTj7QRd5Vsp8Vw25osF
Al4L4QACGwMFCwkIBwIGFQoJCAsCBBYCAwECHgECF4AACgkQ5Vsp8Vw25ovjCgD/V70axzTx84jO
CIWxfW/052u8T0t1SIp9+1AuOQOPICwBAO4H44KsvBJqvW0zB5WL0ejb82nBM5156rgjPzPjUfwL
"""
IN_RELEASE = """\
-----BEGIN PGP SIGNED MESSAGE-----
Hash: SHA256

Suite: test
SHA256:
 2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881 12 main/binary-amd64/Packages.xz
-----BEGIN PGP SIGNATURE-----

iHUEARYIAB0WIQTXxMuQWHXoZOPtBF3lWynxXDbmiwUCXgvhAAAKCRDlWynxXDbm
i+0dAP9zZAGRABVCqkcJd/H+kVV+Qol9S3epYiMLLBm5mguZcQD/Z1DDT5yH/ALL
CDwzvxriHlGtbGZwp4m9FacvYxyB0Qo=
=z5x/
-----END PGP SIGNATURE-----
"""

PACKAGES = """\
Package: bazel-bootstrap
Version: 7.7.1-1
Depends: libc6 (>= 2.38), libfoo1t64 | libbar2, openjdk-21-jre, libgrpc-java
Filename: pool/b.deb
Size: 10
SHA256: aa

Package: libc6
Version: 2.41
Pre-Depends: libgcc-s1:any, gcc-14-base
Filename: pool/c.deb
Size: 11
SHA256: bb
Description: many
 lines

Package: libfoo1v5
Version: 1
Provides: libfoo1t64 (= 1)
Filename: pool/f.deb
Size: 12
SHA256: cc

Package: libgcc-s1
Version: 14
Filename: pool/g.deb
Size: 13
SHA256: dd

Package: openjdk-21-jre
Version: 21
Filename: pool/o.deb
Size: 14
SHA256: ee
"""


@pytest.fixture
def keyring(tmp_path: Path) -> Path:
    file = tmp_path / "keyring.gpg"
    file.write_bytes(base64.b64decode(KEY))
    return file


def test_signed_text_is_returned(keyring: Path) -> None:
    text = debian.verified_release(IN_RELEASE.encode(), keyring)
    assert list(debian.release_hashes(text)) == ["main/binary-amd64/Packages.xz"]


def test_unsigned_lines_around_are_not(keyring: Path) -> None:
    forged = "SHA256:\n 00 1 forged\n\n" + IN_RELEASE + "SHA256:\n 00 1 forged\n"
    assert "forged" not in debian.verified_release(forged.encode(), keyring)


@pytest.mark.parametrize("old, new", [("Suite: test", "Suite: fake"), (" 12 main", " 13 main")])
def test_changed_text_is_fatal(keyring: Path, old: str, new: str) -> None:
    with pytest.raises(AirgapError, match=r"signature .* is not good"):
        debian.verified_release(IN_RELEASE.replace(old, new).encode(), keyring)


def test_no_signature_is_fatal(keyring: Path) -> None:
    with pytest.raises(AirgapError, match="is not good"):
        debian.verified_release(b"Suite: test\n", keyring)


def test_unknown_key_is_fatal(tmp_path: Path) -> None:
    (tmp_path / "empty.gpg").write_bytes(b"")
    with pytest.raises(AirgapError, match="upgrade debian-archive-keyring"):
        debian.verified_release(IN_RELEASE.encode(), tmp_path / "empty.gpg")


def test_missing_gpgv_is_fatal(
    keyring: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(AirgapError, match="install gpgv"):
        debian.verified_release(IN_RELEASE.encode(), keyring)


def test_missing_keyring_is_fatal(tmp_path: Path) -> None:
    with pytest.raises(AirgapError, match="install debian-archive-keyring"):
        debian.verified_release(IN_RELEASE.encode(), tmp_path / "none.gpg")


def test_closure_follows_native_libraries_only() -> None:
    index = {entry.name: entry for entry in debian.parse_packages(PACKAGES)}
    found = debian.closure(index, ["bazel-bootstrap"])
    assert sorted(found) == ["bazel-bootstrap", "libc6", "libfoo1v5", "libgcc-s1"]
    assert found["libc6"].sha256 == "bb"
    assert found["libc6"].size == 11


class _Mirror(Fetcher):
    """Serves one suite; without by-hash files, as some mirrors do."""

    def __init__(self, folder: Path, packages: bytes) -> None:
        self.folder, self.packages = folder, packages
        self.asked: list[str] = []

    def text(self, url: str) -> bytes:
        return b"signed"

    def file(self, url: str, sha256: str, size: int | None = None) -> Path:
        self.asked.append(url)
        if "by-hash" in url:
            raise NotFoundError(url)
        file = self.folder / "Packages.xz"
        file.write_bytes(self.packages)
        return file


def test_index_falls_back_to_the_plain_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        debian,
        "verified_release",
        lambda _: "SHA256:\n abc 12 main/binary-amd64/Packages.xz\nMD5Sum:\n 1 2 3\n",
    )
    server = _Mirror(tmp_path, lzma.compress(PACKAGES.encode()))
    assert "libc6" in debian.load_index(server, "http://mirror/debian", "forky")
    assert server.asked == [
        "http://mirror/debian/dists/forky/main/binary-amd64/by-hash/SHA256/abc",
        "http://mirror/debian/dists/forky/main/binary-amd64/Packages.xz",
    ]


def test_mirror_is_that_of_apt(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DEBIAN_MIRROR", raising=False)
    monkeypatch.setattr("shutil.which", lambda _: "/usr/bin/apt-get")
    listing = (
        "'http://mirror/debian-security/dists/x/InRelease' a 0\n"
        "'http://mirror/debian/dists/bookworm/InRelease' b 0\n"
    )
    monkeypatch.setattr(
        "subprocess.run",
        lambda command, **_: subprocess.CompletedProcess(command, 0, listing, ""),
    )
    assert debian.mirror() == "http://mirror/debian"


def test_no_mirror_says_what_to_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DEBIAN_MIRROR", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(AirgapError, match="DEBIAN_MIRROR"):
        debian.mirror()
