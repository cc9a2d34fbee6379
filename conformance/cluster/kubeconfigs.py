"""The kubeconfigs of a cluster of the suite: one for people, and one for each user of `users.py`."""

from __future__ import annotations

import base64
import datetime
from pathlib import Path

import yaml

from conformance import disk, known_secrets
from conformance.cluster.facts import ClusterProperties
from conformance.cluster.users import ADMINISTRATOR, MASTERS, SUITE

VALIDITY = datetime.timedelta(days=3650)
SKEW = datetime.timedelta(hours=1)
"""A certificate is valid from shortly before its creation, because the clock of a machine that has just woken up may be
set back."""


def write_administrator_kubeconfig(facts: ClusterProperties) -> None:
    """Write the administrator's kubeconfig."""
    _write_kubeconfig(facts, facts.kubeconfig, ADMINISTRATOR, MASTERS)


def suite_kubeconfig(facts: ClusterProperties) -> Path:
    """Return the kubeconfig of the suite. The first call writes the file."""
    return _kubeconfig_of(facts, SUITE, MASTERS)


def role_kubeconfig(facts: ClusterProperties, name: str) -> Path:
    """Return the kubeconfig of an implementation's role. The role has no permissions until it is bound to a
    ClusterRole."""
    return _kubeconfig_of(facts, name)


def _kubeconfig_of(facts: ClusterProperties, user: str, *groups: str) -> Path:
    path = facts.directory / "users" / user
    if not path.exists():
        path.parent.mkdir(mode=0o700, exist_ok=True)
        _write_kubeconfig(facts, path, user, *groups)
    known_secrets.learn_kubeconfig(path)
    return path


def _write_kubeconfig(facts: ClusterProperties, path: Path, user: str, *groups: str) -> None:
    """Write a kubeconfig (mode 0600) with the certificates embedded."""
    certificate, key = _certificate(facts, user, groups)
    name = f"grove-conformance-{facts.name}"
    cluster = {"server": facts.server, "certificate-authority-data": _base64_text((facts.pki / "ca.crt").read_bytes())}
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": name,
        "clusters": [{"name": name, "cluster": cluster}],
        "users": [
            {
                "name": name,
                "user": {"client-certificate-data": _base64_text(certificate), "client-key-data": _base64_text(key)},
            }
        ],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
    }
    disk.write(path, yaml.safe_dump(document))


def _certificate(facts: ClusterProperties, user: str, groups: tuple[str, ...]) -> tuple[bytes, bytes]:
    """Return a client certificate, signed by the authority of the cluster, and its key. Takes a few milliseconds."""
    from cryptography import x509  # its import takes longer than most commands
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec, rsa
    from cryptography.hazmat.primitives.serialization import (
        Encoding,
        NoEncryption,
        PrivateFormat,
        load_pem_private_key,
    )
    from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

    # kwokctl has just created the key. Its validation would take longer than everything else here.
    authority = load_pem_private_key((facts.pki / "ca.key").read_bytes(), None, unsafe_skip_rsa_key_validation=True)
    assert isinstance(authority, rsa.RSAPrivateKey), "kwokctl makes RSA keys (FC-022)"
    # The authority's own certificate has the serial number 0, which is not allowed.
    issuer = x509.load_pem_x509_certificate((facts.pki / "admin.crt").read_bytes()).issuer
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.datetime.now(datetime.UTC)
    organizations = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
    certificate = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([*organizations, x509.NameAttribute(NameOID.COMMON_NAME, user)]))
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - SKEW)
        .not_valid_after(now + VALIDITY)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False)
        .sign(authority, hashes.SHA256())
    )
    private_key = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return certificate.public_bytes(Encoding.PEM), private_key


def _base64_text(content: bytes) -> str:
    return base64.b64encode(content).decode()
