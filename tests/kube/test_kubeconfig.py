"""Tests of kubeconfig files against a TLS server on loopback, with certificates generated for the tests."""

from __future__ import annotations

import base64
import datetime
import ipaddress
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from scripted import ScriptedResponse, ScriptedServer

from kube.client import Client
from kube.config import load


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


@dataclass
class CertificatePair:
    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    @property
    def pem(self) -> bytes:
        return self.certificate.public_bytes(serialization.Encoding.PEM)

    @property
    def key_pem(self) -> bytes:
        return self.key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )


def issue_certificate(name: str, authority: CertificatePair | None, *alternatives: x509.GeneralName) -> CertificatePair:
    """Return a certificate that is signed by `authority`, or the certificate of a new authority if there is none."""
    key = ec.generate_private_key(ec.SECP256R1())
    now = datetime.datetime.now(datetime.UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(_name(name))
        .issuer_name(authority.certificate.subject if authority else _name(name))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(hours=1))
        .add_extension(x509.BasicConstraints(ca=authority is None, path_length=None), critical=True)
    )
    if alternatives:
        builder = builder.add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
    return CertificatePair(builder.sign(authority.key if authority else key, hashes.SHA256()), key)


@dataclass
class Authority:
    ca: CertificatePair
    server: CertificatePair
    user: CertificatePair


@pytest.fixture(scope="module")
def tls() -> Authority:
    ca = issue_certificate("test authority", None)
    loopback = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
    return Authority(ca, issue_certificate("server", ca, loopback), issue_certificate("somebody", ca))


def server_context(
    tls: Authority, folder: Path, pair: CertificatePair, *, require_certificate: bool = True
) -> ssl.SSLContext:
    (folder / "server.pem").write_bytes(pair.pem + pair.key_pem)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cadata=tls.ca.pem.decode())
    context.load_cert_chain(folder / "server.pem")
    context.verify_mode = ssl.CERT_REQUIRED if require_certificate else ssl.CERT_NONE
    # With TLS 1.3, a missing client certificate is not noticed before the first read.
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    return context


def kubeconfig(folder: Path, cluster: dict[str, Any], user: dict[str, Any]) -> Path:
    path = folder / "kubeconfig"
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
        "clusters": [{"name": "k", "cluster": cluster}],
        "users": [{"name": "u", "user": user}],
    }
    path.write_text(yaml.safe_dump(document))
    return path


def inline(data: bytes) -> str:
    return base64.b64encode(data).decode()


def by_value(tls: Authority, folder: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    return {"certificate-authority-data": inline(tls.ca.pem)}, {
        "client-certificate-data": inline(tls.user.pem),
        "client-key-data": inline(tls.user.key_pem),
    }


def by_file(tls: Authority, folder: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    (folder / "ca.pem").write_bytes(tls.ca.pem)
    (folder / "user.pem").write_bytes(tls.user.pem)
    (folder / "user.key").write_bytes(tls.user.key_pem)
    # Relative paths are relative to the kubeconfig's folder.
    return {"certificate-authority": "ca.pem"}, {"client-certificate": "user.pem", "client-key": "user.key"}


async def send_request(server: ScriptedServer, folder: Path, cluster: dict[str, Any], user: dict[str, Any]) -> bytes:
    path = kubeconfig(folder, {"server": server.address, **cluster}, user)
    async with Client.from_kubeconfig(path, user_agent="test") as client:
        return await client.request("GET", "/version")


@pytest.mark.parametrize("form", [by_value, by_file])
async def test_a_client_certificate_is_presented_and_the_server_is_verified(
    tls: Authority, tmp_path: Path, form: Callable[..., tuple[dict[str, Any], dict[str, Any]]]
) -> None:
    cluster, user = form(tls, tmp_path)
    server = ScriptedServer([ScriptedResponse(b"hello"), ScriptedResponse(b"never")])
    async with server.serve(server_context(tls, tmp_path, tls.server)):
        assert await send_request(server, tmp_path, cluster, user) == b"hello"
        transport = server.requests[0].transport
        assert transport is None or "somebody" in str(transport.get_extra_info("peercert"))
        # The server refuses the same request without the certificate.
        with pytest.raises((aiohttp.ClientError, OSError)):
            await send_request(server, tmp_path, cluster, {})
    assert len(server.requests) == 1


async def test_a_server_of_another_authority_is_rejected_unless_verification_is_disabled(
    tls: Authority, tmp_path: Path
) -> None:
    _, user = by_value(tls, tmp_path)
    other = {"certificate-authority-data": inline(issue_certificate("another", None).pem)}
    server = ScriptedServer([ScriptedResponse(b"hello")])
    async with server.serve(server_context(tls, tmp_path, tls.server)):
        with pytest.raises(aiohttp.ClientConnectorCertificateError):
            await send_request(server, tmp_path, other, user)
        assert await send_request(server, tmp_path, {"insecure-skip-tls-verify": True}, user) == b"hello"


async def test_the_name_in_the_certificate_may_differ(tls: Authority, tmp_path: Path) -> None:
    named = issue_certificate("server", tls.ca, x509.DNSName("kubernetes.test"))
    cluster, user = by_value(tls, tmp_path)
    server = ScriptedServer([ScriptedResponse(b"hello")])
    async with server.serve(server_context(tls, tmp_path, named)):
        with pytest.raises(aiohttp.ClientConnectorCertificateError):
            await send_request(server, tmp_path, cluster, user)
        assert await send_request(server, tmp_path, {**cluster, "tls-server-name": "kubernetes.test"}, user) == b"hello"


async def test_a_token_is_sent(tls: Authority, tmp_path: Path) -> None:
    cluster, _ = by_value(tls, tmp_path)
    server = ScriptedServer([ScriptedResponse(b"hello")])
    async with server.serve(server_context(tls, tmp_path, tls.server, require_certificate=False)):
        await send_request(server, tmp_path, cluster, {"token": "secret"})
    assert server.requests[0].headers["Authorization"] == "Bearer secret"


async def test_plain_http_needs_no_credentials(tmp_path: Path) -> None:
    server = ScriptedServer([ScriptedResponse(b"hello")])
    async with server.serve():
        assert await send_request(server, tmp_path, {}, {}) == b"hello"
    assert load(tmp_path / "kubeconfig").tls is None


def _config_exception() -> type[Exception]:
    from kubernetes.config import ConfigException  # slow to import, and only these tests need it

    return ConfigException


def test_a_missing_file_is_reported_by_name(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="nowhere: no such kubeconfig file"):
        load(tmp_path / "nowhere")


@pytest.mark.parametrize("text", ["", "[1]", "kind: Config\n", "kind: [unclosed", "\x00"])
def test_an_invalid_kubeconfig_is_reported_with_its_path(tmp_path: Path, text: str) -> None:
    path = tmp_path / "kubeconfig"
    path.write_text(text)
    with pytest.raises(_config_exception(), match=str(path)):
        load(path)


def test_an_invalid_certificate_is_reported_with_its_path(tmp_path: Path) -> None:
    path = kubeconfig(tmp_path, {"server": "https://127.0.0.1:1", "certificate-authority-data": inline(b"no")}, {})
    with pytest.raises(_config_exception(), match=str(path)):
        load(path)
