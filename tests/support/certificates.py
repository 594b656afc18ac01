"""A certificate that a server made for itself, and one of a company's own authority."""

from __future__ import annotations

import ipaddress
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

_Key = ec.EllipticCurvePrivateKey


def certificate(folder: Path) -> tuple[Path, Path]:
    """Files with a certificate for 127.0.0.1 and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = _named("127.0.0.1")
    made = _begun(name, name, key).sign(key, hashes.SHA256())
    return _written(folder, made, key)


def issued_certificate(folder: Path) -> tuple[Path, Path, Path]:
    """Files with an authority, a certificate for 127.0.0.1 that it issued, and that one's key.

    As `openssl req -x509` makes the one and `openssl x509 -req` the other: neither says what its
    key may be used for, the second not which key signed it.
    """
    authority, key = (
        ec.generate_private_key(ec.SECP256R1()),
        ec.generate_private_key(ec.SECP256R1()),
    )
    issuer = _named("Company CA")
    at_top = (
        _begun(issuer, issuer, authority)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(authority, hashes.SHA256())
    )
    address = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
    made = (
        _begun(_named("127.0.0.1"), issuer, key)
        .add_extension(x509.SubjectAlternativeName([address]), critical=False)
        .sign(authority, hashes.SHA256())
    )
    root = folder / "authority.pem"
    root.write_bytes(at_top.public_bytes(serialization.Encoding.PEM))
    return root, *_written(folder, made, key)


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _begun(subject: x509.Name, issuer: x509.Name, key: _Key) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
    )


def _written(folder: Path, made: x509.Certificate, key: _Key) -> tuple[Path, Path]:
    public, private = folder / "certificate.pem", folder / "key.pem"
    public.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    private.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return public, private
