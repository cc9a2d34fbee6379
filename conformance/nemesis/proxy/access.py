"""Access to the proxy for the processes of a role: a separate kubeconfig, and the certificate to which it refers."""

from __future__ import annotations

import base64
import ssl
from pathlib import Path

import yaml

from conformance import disk
from conformance.implementation.certificates import Certificates


def server_context(certificates: Certificates, clients: bytes) -> ssl.SSLContext:
    """Return the proxy's TLS context. `clients` is the cluster's certificate authority (PEM), which has signed the
    certificates of all clients."""
    folder = certificates.ensure()
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cadata=clients.decode())
    context.load_cert_chain(folder / "tls.crt", folder / "tls.key")
    context.verify_mode = ssl.CERT_REQUIRED
    context.set_alpn_protocols(["http/1.1"])
    return context


def kubeconfig(original: Path, path: Path, server: str, certificates: Certificates) -> Path:
    """Write the kubeconfig of a role (mode 0600) for another server, whose certificate is signed by the authority of
    `certificates`."""
    document = yaml.safe_load(original.read_text(encoding="utf-8"))
    authority = (certificates.ensure() / "ca.crt").read_bytes()
    for entry in document["clusters"]:
        entry["cluster"] = {"server": server, "certificate-authority-data": base64.b64encode(authority).decode()}
    disk.write(path, yaml.safe_dump(document))
    return path
