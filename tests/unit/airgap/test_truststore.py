"""The Java trust store is read back here as Java reads it."""

from __future__ import annotations

import base64
import hashlib
import struct

from airgap.truststore import java_truststore


def _pem(*certificates: bytes) -> str:
    blocks = (
        f"-----BEGIN CERTIFICATE-----\n{base64.b64encode(der).decode()}\n-----END CERTIFICATE-----"
        for der in certificates
    )
    return "# a comment\n" + "\n".join(blocks) + "\n"


def test_certificates_and_hash() -> None:
    certificates = [b"first certificate", b"second"]
    store = java_truststore(_pem(*certificates))
    body, mac = store[:-20], store[-20:]
    key = "changeit".encode("utf-16-be") + b"Mighty Aphrodite"
    assert hashlib.sha1(key + body).digest() == mac
    assert struct.unpack(">III", body[:12]) == (0xFEEDFEED, 2, 2)
    offset, found, aliases = 12, [], []

    def text() -> bytes:
        nonlocal offset
        (length,) = struct.unpack_from(">H", body, offset)
        offset += 2 + length
        return body[offset - length : offset]

    for _ in range(2):
        assert struct.unpack_from(">I", body, offset) == (2,)
        offset += 4
        aliases.append(text())
        offset += 8  # creation time
        assert text() == b"X.509"
        (length,) = struct.unpack_from(">I", body, offset)
        found.append(body[offset + 4 : offset + 4 + length])
        offset += 4 + length
    assert found == certificates
    assert len(set(aliases)) == 2
    assert offset == len(body)


def test_no_certificates() -> None:
    assert len(java_truststore("")) == 12 + 20
