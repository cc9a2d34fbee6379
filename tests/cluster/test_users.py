"""Tests that each user of a cluster has its own certificate, signed by the cluster's authority. The tests need no
cluster."""

from __future__ import annotations

import base64
import datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from conformance.cluster import kubeconfigs, users


@pytest.fixture
def cluster_facts(tmp_path: Path) -> Any:
    """A replacement for a cluster, with certificates like those that kwokctl creates."""
    pki = tmp_path / "pki"
    pki.mkdir()
    key = rsa.generate_private_key(65537, 2048)
    now, name = datetime.datetime.now(datetime.UTC), x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "kwok-ca")])
    ca = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now)
        .not_valid_after(now + datetime.timedelta(days=1))
        .sign(key, hashes.SHA256())
    )
    pem = ca.public_bytes(Encoding.PEM)
    (pki / "ca.crt").write_bytes(pem)
    (pki / "admin.crt").write_bytes(pem)
    (pki / "ca.key").write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption()))
    return SimpleNamespace(
        name="c", directory=tmp_path, pki=pki, server="https://127.0.0.1:1", kubeconfig=tmp_path / "kubeconfig"
    )


def subject(cluster_facts: Any, path: Path) -> dict[str, str]:
    """Return the subject of a kubeconfig's certificate, and check that the cluster's authority has signed it."""
    [user] = yaml.safe_load(path.read_text())["users"]
    certificate = x509.load_pem_x509_certificate(base64.b64decode(user["user"]["client-certificate-data"]))
    authority = x509.load_pem_x509_certificate((cluster_facts.pki / "ca.crt").read_bytes())
    assert certificate.issuer.public_bytes() == authority.subject.public_bytes()
    public = authority.public_key()
    assert isinstance(public, rsa.RSAPublicKey) and certificate.signature_hash_algorithm is not None
    public.verify(
        certificate.signature,
        certificate.tbs_certificate_bytes,
        PKCS1v15(),
        certificate.signature_hash_algorithm,
    )
    assert path.stat().st_mode & 0o777 == 0o600
    return {str(entry.oid._name): str(entry.value) for entry in certificate.subject}


def test_each_user_has_its_own_kubeconfig(cluster_facts: Any) -> None:
    kubeconfigs.write_administrator_kubeconfig(cluster_facts)
    assert subject(cluster_facts, cluster_facts.kubeconfig) == {
        "commonName": "kubernetes-admin",
        "organizationName": "system:masters",
    }
    assert subject(cluster_facts, kubeconfigs.suite_kubeconfig(cluster_facts)) == {
        "commonName": "grove-conformance",
        "organizationName": "system:masters",
    }
    assert subject(cluster_facts, kubeconfigs.role_kubeconfig(cluster_facts, "operator")) == {"commonName": "operator"}
    first_content = kubeconfigs.role_kubeconfig(cluster_facts, "operator").read_bytes()
    assert kubeconfigs.role_kubeconfig(cluster_facts, "operator").read_bytes() == first_content


def test_components_are_distinguished_from_other_users() -> None:
    components = ("kwok-admin", "system:apiserver", "system:serviceaccount:kube-system:node-controller")
    other_users = (
        "operator",
        users.SUITE,
        users.ADMINISTRATOR,
        "system:serviceaccount:mine:node-controller",
        "system:x",
    )
    assert all(map(users.is_component, components)) and not any(map(users.is_component, other_users))
