"""Serving certificates for webhooks on loopback: one authority and one certificate per folder, created once."""

from __future__ import annotations

import base64
import datetime
import ipaddress
import os
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from conformance import regular

VALID = datetime.timedelta(days=30)
MOST = 1 << 16
"""Maximum bytes of a certificate."""
SKEW = datetime.timedelta(hours=1)
"""The clock of a machine that just woke up may step back: a certificate is valid from shortly before its creation."""


class Certificates:
    """`tls.crt`, `tls.key` and `ca.crt` (PEM) in `directory`, for 127.0.0.1, ::1 and localhost.

    The key of the authority is never written: nothing else can be signed with it.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def ensure(self) -> Path:
        """Create the files unless they exist. Return the folder."""
        if not (self.directory / "ca.crt").exists():
            self._make()
        return self.directory

    def bundle(self) -> str:
        """Return the authority's certificate for `clientConfig.caBundle`: base64 of the PEM."""
        return base64.b64encode(regular.Held(self.ensure() / "ca.crt").at(0, MOST)).decode()

    def _make(self) -> None:
        self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        ca_key, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
        ca_name, name = _name("grove-conformance webhook authority"), _name("localhost")
        ca = (
            _unsigned(ca_name, ca_name, ca_key.public_key())
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_usage(signs_certificates=True), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(ca_key.public_key()), critical=False)
            .sign(ca_key, hashes.SHA256())
        )
        hosts: list[x509.GeneralName] = [
            x509.IPAddress(ipaddress.ip_address("127.0.0.1")),
            x509.IPAddress(ipaddress.ip_address("::1")),
            x509.DNSName("localhost"),
        ]
        certificate = (
            _unsigned(name, ca_name, key.public_key())
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(signs_certificates=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
            .add_extension(x509.SubjectAlternativeName(hosts), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(ca_key.public_key()), critical=False)
            .sign(ca_key, hashes.SHA256())
        )
        private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        write_private(self.directory / "tls.key", private)
        write_private(self.directory / "tls.crt", certificate.public_bytes(Encoding.PEM))
        write_private(self.directory / "ca.crt", ca.public_bytes(Encoding.PEM))  # last: it shows that all files exist


def write_private(path: Path, content: bytes) -> None:
    """Write a file that only this user can read (0600 from the beginning), completely or not at all."""
    beside = path.with_name(f".{path.name}.new")
    beside.unlink(missing_ok=True)
    with os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(content)
    beside.rename(path)


def _name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _unsigned(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - SKEW)
        .not_valid_after(now + VALID)
    )


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )
