"""Asking the components of a cluster whether they are well, over loopback."""

from __future__ import annotations

import http.client
import ssl
from collections.abc import Mapping
from pathlib import Path

from conformance.cluster.ports import Port

_PATHS = {
    Port.ETCD: "/health",
    Port.APISERVER: "/healthz",
    Port.CONTROLLER_MANAGER: "/healthz",
    Port.SCHEDULER: "/healthz",
    Port.KWOK: "/healthz",
}
COMPONENTS = {
    Port.ETCD: "etcd",
    Port.APISERVER: "kube-apiserver",
    Port.CONTROLLER_MANAGER: "kube-controller-manager",
    Port.SCHEDULER: "kube-scheduler",
    Port.KWOK: "kwok-controller",
}


class Health:
    """Checks of one cluster. `pki` is the folder with the administrator's certificate; it may not exist yet."""

    def __init__(self, ports: Mapping[Port, int], pki: Path) -> None:
        self._ports, self._pki = ports, pki
        self._context: ssl.SSLContext | None = None

    def complaint(self, components: list[Port]) -> str:
        """What is not well yet among `components`, the service account of new pods included; empty if all is."""
        for port in components:
            if reason := self._complaint(port):
                return f"{COMPONENTS[port]}: {reason}"
        status, _ = self._get(Port.APISERVER, "/api/v1/namespaces/default/serviceaccounts/default")
        return "" if status == 200 else "serviceaccount default/default is not there yet"

    def _complaint(self, port: Port) -> str:
        try:
            status, body = self._get(port, _PATHS[port])
        except (OSError, http.client.HTTPException) as error:
            return str(error) or type(error).__name__
        return "" if status == 200 else f"HTTP {status} {body[:80]}"

    def _get(self, port: Port, path: str) -> tuple[int, str]:
        connection: http.client.HTTPConnection
        if port in (Port.ETCD, Port.KWOK):
            connection = http.client.HTTPConnection("127.0.0.1", self._ports[port], timeout=2)
        else:
            connection = http.client.HTTPSConnection(
                "127.0.0.1", self._ports[port], timeout=2, context=self._client(port)
            )
        try:
            connection.request("GET", path)
            response = connection.getresponse()
            return response.status, response.read(4096).decode(errors="replace")
        finally:
            connection.close()

    def _client(self, port: Port) -> ssl.SSLContext:
        if port is not Port.APISERVER:
            # These two make up a certificate at each start, and their health needs no identity.
            context = ssl.create_default_context()
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
            return context
        if self._context is None:
            context = ssl.create_default_context(cafile=str(self._pki / "ca.crt"))
            context.load_cert_chain(self._pki / "admin.crt", self._pki / "admin.key")
            self._context = context
        return self._context
