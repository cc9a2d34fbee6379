"""Tests on a real cluster that components are recognized by their credentials, and that no other client is mistaken for
a component."""

from __future__ import annotations

import asyncio
import json
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from conformance.cluster import kubeconfigs
from conformance.cluster.addons.metrics import API_SERVICES
from conformance.cluster.audit import TOKENS, AuditLog
from conformance.cluster.controlplane import Cluster
from conformance.cluster.identities import UNKNOWN
from conformance.cluster.state import StateRoot
from kube.client import MERGE_PATCH, Client
from kube.errors import ApiError
from kube.resource import NAMESPACES, SERVICES
from tests.attacks.credentials import GARBAGE_COLLECTOR, create_stored_token, request_token, token_connection
from tests.attacks.helpers import send
from tests.cluster.waiting import wait_for

pytestmark = pytest.mark.cluster

NAMESPACE_PATH = "/api/v1/namespaces/default"
COLLECTOR_USER = f"system:serviceaccount:kube-system:{GARBAGE_COLLECTOR}"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    cluster = Cluster.up("identities", state=StateRoot(tmp_path_factory.mktemp("state") / "root"))
    yield cluster
    cluster.down()


def actors(cluster: Cluster, mark: int = 0) -> set[str]:
    return {event.user.username for event, _ in AuditLog.of(cluster).events(mark)}


def test_components_are_recognized_by_tokens_that_the_log_contains(cluster: Cluster) -> None:
    send(kubeconfigs.suite_kubeconfig(cluster), "POST", NAMESPACES.path(), {"metadata": {"name": "first"}})
    wait_for(lambda: any("root-ca-cert-publisher" in actor for actor in actors(cluster)))
    names = actors(cluster)
    assert {"kwok-admin", "system:apiserver", "grove-conformance"} < names
    assert [actor for actor in names if UNKNOWN in actor] == []
    requests = [event for event, _ in AuditLog.of(cluster).events(0) if event.objectRef.path == TOKENS]
    assert requests and all(event.responseObject and event.issued == event.annotations.issued for event in requests)


@pytest.mark.parametrize(
    ("obtain_token", "actor"), [(request_token, "operator"), (create_stored_token, f"{UNKNOWN} (as {COLLECTOR_USER})")]
)
def test_a_client_with_a_controllers_token_is_not_that_controller(
    cluster: Cluster, obtain_token: Any, actor: str
) -> None:
    connection = create_administrator(cluster)
    component = token_connection(connection, obtain_token(connection))
    mark = AuditLog.of(cluster).mark()
    send(component, "PATCH", NAMESPACE_PATH, {"metadata": {"labels": {"by": actor[:7]}}}, content_type=MERGE_PATCH)
    writes = wait_for(
        lambda: [write for write in AuditLog.of(cluster).accepted(mark) if write.resource == "namespaces"]
    )
    assert [write.user for write in writes] == [actor]


def create_administrator(cluster: Cluster) -> Path:
    """Bind the user `operator` to cluster-admin, and return its kubeconfig."""
    path = kubeconfigs.role_kubeconfig(cluster, "operator")
    subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "operator"}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}
    binding = {"metadata": {"name": "operator"}, "subjects": [subject], "roleRef": role}
    with suppress(ApiError):  # the binding exists
        bindings = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
        send(kubeconfigs.suite_kubeconfig(cluster), "POST", bindings, binding)
    return path


def test_aggregated_servers_receive_no_client_certificate(cluster: Cluster) -> None:
    """With a client certificate, a server could relay the connection back to the API server and impersonate a
    component."""
    certificates: list[Any] = []
    tls_context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(cluster.pki / "ca.crt"))
    tls_context.load_cert_chain(cluster.pki / "admin.crt", cluster.pki / "admin.key")
    tls_context.verify_mode = ssl.CERT_OPTIONAL
    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=_record_certificates, args=(server, tls_context, certificates), daemon=True).start()
        asyncio.run(_aggregate(cluster, server.getsockname()[1]))
        wait_for(lambda: certificates)
    assert set(certificates) == {None}


def _record_certificates(server: socket.socket, tls_context: ssl.SSLContext, certificates: list[Any]) -> None:
    """Record the certificate of each client."""
    while True:
        try:
            client_socket, _ = server.accept()
        except OSError:
            return
        with client_socket, suppress(OSError), tls_context.wrap_socket(client_socket, server_side=True) as connection:
            if connection.recv(1 << 16):
                certificate = connection.getpeercert()
                certificates.append(json.dumps(certificate["subject"]) if certificate else None)


async def _aggregate(cluster: Cluster, port: int) -> None:
    service_name = {"name": "hostile", "namespace": "default"}
    spec = {"type": "ExternalName", "externalName": "localhost", "ports": [{"port": port}]}
    api = {"group": "hostile.example", "version": "v1", "groupPriorityMinimum": 100, "versionPriority": 100}
    target = {"insecureSkipTLSVerify": True, "service": {**service_name, "port": port}}
    metadata = {"name": "v1.hostile.example"}
    async with Client.from_kubeconfig(kubeconfigs.suite_kubeconfig(cluster), user_agent="cluster-test/1") as client:
        await client.create(SERVICES, {"apiVersion": "v1", "kind": "Service", "metadata": service_name, "spec": spec})
        body = {"apiVersion": API_SERVICES.api_version, "kind": "APIService", "metadata": metadata}
        await client.create(API_SERVICES, {**body, "spec": {**api, **target}})
