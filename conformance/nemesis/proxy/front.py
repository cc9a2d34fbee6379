"""A proxy in front of the API server for one role of a cluster."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from conformance.cluster import kubeconfigs
from conformance.cluster.controlplane import Cluster
from conformance.cluster.ports import Ports
from conformance.implementation import deployment
from conformance.implementation.certificates import Certificates
from conformance.implementation.descriptor import Role
from conformance.implementation.values import ClusterFacts
from conformance.nemesis.proxy import access
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
    tls = access.server_context(certificates, (cluster.pki / "ca.crt").read_bytes())
    proxy = Proxy(config.load(original), tls, port)
    path = access.kubeconfig(original, folder / f"{role}.kubeconfig", f"https://{HOST}:{port}", certificates)
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
