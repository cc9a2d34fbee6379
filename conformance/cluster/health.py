"""Health checks of the components of a cluster over loopback."""

from __future__ import annotations

import http.client
import json
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
    """Health checks of one cluster. `pki` is the folder with the administrator's certificate; it need not exist yet.

    Connections are kept open until `close`. Two threads may check different components at the same time.
    """

    def __init__(self, ports: Mapping[Port, int], pki: Path) -> None:
        self._ports, self._pki = ports, pki
        self._context: ssl.SSLContext | None = None
        self._connections: dict[Port, http.client.HTTPConnection] = {}

    def close(self) -> None:
        """Close all connections. Later checks open new ones."""
        while self._connections:
            self._connections.popitem()[1].close()

    def complaint(self, components: list[Port]) -> str:
        """Return the first error message about `components` or about the service account of new pods; empty if all are
        healthy."""
        for port in components:
            if reason := self.find_problem(port):
                return f"{COMPONENTS[port]}: {reason}"
        status, _ = self._get(Port.APISERVER, "/api/v1/namespaces/default/serviceaccounts/default")
        return "" if status == 200 else "serviceaccount default/default is not there yet"

    def version(self) -> str:
        """Return the version that the API server reports, such as `1.36.3`. Raises OSError if the server does not
        respond, or ValueError if its response is invalid."""
        status, body = self._get(Port.APISERVER, "/version")
        if status != 200:
            raise ValueError(f"/version: HTTP {status} {body[:80]}")
        return str(json.loads(body)["gitVersion"]).removeprefix("v")

    def find_problem(self, port: Port) -> str:
        """Return the error message about one component; empty if the component is healthy. Takes at most two
        seconds."""
        try:
            status, body = self._get(port, _PATHS[port])
        except (OSError, http.client.HTTPException) as error:
            return str(error) or type(error).__name__
        return "" if status == 200 else f"HTTP {status} {body[:80]}"

    def _get(self, port: Port, path: str) -> tuple[int, str]:
        is_reused = port in self._connections
        try:
            return self._request(port, path)
        except (ConnectionError, http.client.HTTPException):
            if not is_reused:
                raise
            return self._request(port, path)  # the component has closed an idle connection, or was restarted

    def _request(self, port: Port, path: str) -> tuple[int, str]:
        connection = self._connections.pop(port, None) or self._connection(port)
        try:
            connection.request("GET", path)
            response = connection.getresponse()
            result = response.status, response.read().decode(errors="replace")
        except BaseException:
            connection.close()
            raise
        self._connections[port] = connection
        return result

    def _connection(self, port: Port) -> http.client.HTTPConnection:
        if port in (Port.ETCD, Port.KWOK):
            return http.client.HTTPConnection("127.0.0.1", self._ports[port], timeout=2)
        return http.client.HTTPSConnection("127.0.0.1", self._ports[port], timeout=2, context=self._client(port))

    def _client(self, port: Port) -> ssl.SSLContext:
        if port is not Port.APISERVER:
            # The other two components create a certificate at each start, and their health checks need no identity.
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
            return context
        if self._context is None:
            context = ssl.create_default_context(cafile=str(self._pki / "ca.crt"))
            context.load_cert_chain(self._pki / "admin.crt", self._pki / "admin.key")
            self._context = context
        return self._context
