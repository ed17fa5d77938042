"""The system's CA certificates as a Java trust store.

Bazel's downloader runs in a JVM that knows only its own CAs; it must accept what the machine
accepts. Java reads no PEM bundle, and there is no keytool without a JDK, so the store is written
here: the JKS format is a header, the certificates and a keyed hash.
"""

from __future__ import annotations

import base64
import hashlib
import os
import re
import struct
from pathlib import Path
from typing import Optional

PASSWORD = "changeit"  # Java's customary one: a trust store holds nothing secret
_SYSTEM_BUNDLE = "/etc/ssl/certs/ca-certificates.crt"
_MAGIC, _VERSION, _TRUSTED_CERTIFICATE = 0xFEEDFEED, 2, 2


def ca_bundle() -> Optional[Path]:
    """The PEM bundle of the CAs that this machine trusts, or None where it has none."""
    for name in (os.environ.get("SSL_CERT_FILE"), _SYSTEM_BUNDLE):
        if name and os.path.isfile(name):
            return Path(name)
    return None


def java_truststore(pem: str) -> bytes:
    """The certificates of a PEM bundle as a JKS file's content."""
    blocks = re.findall(r"-----BEGIN CERTIFICATE-----(.*?)-----END CERTIFICATE-----", pem, re.S)
    out = struct.pack(">III", _MAGIC, _VERSION, len(blocks))
    for number, block in enumerate(blocks):
        alias = f"ca{number}".encode()
        certificate = base64.b64decode(block)
        out += struct.pack(">IH", _TRUSTED_CERTIFICATE, len(alias)) + alias
        # A creation time of 0 keeps the file reproducible.
        out += struct.pack(">QH", 0, 5) + b"X.509"
        out += struct.pack(">I", len(certificate)) + certificate
    return out + hashlib.sha1(PASSWORD.encode("utf-16-be") + b"Mighty Aphrodite" + out).digest()
