"""A proxy in front of the API server for one role of a cluster, with a kubeconfig and a certificate of its own."""

from __future__ import annotations

import base64
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import yaml

from conformance import disk
from conformance.cluster import kubeconfigs
from conformance.cluster.controlplane import Cluster
from conformance.cluster.ports import Ports
from conformance.implementation import deployment
from conformance.implementation.certificates import Certificates
from conformance.implementation.descriptor import Role
from conformance.implementation.values import ClusterFacts
from conformance.nemesis.proxy.server import HOST, Proxy
from conformance.suite.scenes.api import Loop
from kube import config


@contextmanager
def proxy_in_front(cluster: Cluster, role: Role, loop: Loop) -> Iterator[tuple[Proxy, ClusterFacts]]:
    """Start a proxy in `loop`. Yield it and the facts of the cluster, in which the kubeconfig of the role leads to the
    proxy."""
    folder = cluster.directory / "nemesis"
    certificates = Certificates(folder / "certificates")
    original = kubeconfigs.role_kubeconfig(cluster, role)
    port = Ports().claim(cluster.directory)
    tls = _server_context(certificates, (cluster.pki / "ca.crt").read_bytes())
    proxy = Proxy(config.load(original), tls, port)
    path = _kubeconfig(original, folder / f"{role}.kubeconfig", f"https://{HOST}:{port}", certificates)
    facts = deployment.facts_of(cluster)
    role_kubeconfig = facts.role_kubeconfig
    assert role_kubeconfig is not None, "a cluster of the suite has a user for each role"
    loop.run(proxy.__aenter__())
    try:
        yield (
            proxy,
            replace(facts, role_kubeconfig=lambda requested: path if requested == role else role_kubeconfig(requested)),
        )
    finally:
        loop.run(proxy.__aexit__(None, None, None))


def _server_context(certificates: Certificates, clients: bytes) -> ssl.SSLContext:
    """Return the proxy's TLS context. `clients` is the cluster's certificate authority (PEM), which has signed the
    certificates of all clients."""
    folder = certificates.ensure()
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cadata=clients.decode())
    context.load_cert_chain(folder / "tls.crt", folder / "tls.key")
    context.verify_mode = ssl.CERT_REQUIRED
    context.set_alpn_protocols(["http/1.1"])
    return context


def _kubeconfig(original: Path, path: Path, server: str, certificates: Certificates) -> Path:
    """Write the kubeconfig of a role (mode 0600) for another server, whose certificate is signed by the authority of
    `certificates`."""
    document = yaml.safe_load(original.read_text(encoding="utf-8"))
    authority = (certificates.ensure() / "ca.crt").read_bytes()
    for entry in document["clusters"]:
        entry["cluster"] = {"server": server, "certificate-authority-data": base64.b64encode(authority).decode()}
    disk.write(path, yaml.safe_dump(document))
    return path
