"""The facts about a cluster that need no request: its names, paths and ports, and the environment of its processes."""

from __future__ import annotations

from pathlib import Path

from conformance.cluster import processes
from conformance.cluster.pins import KUBERNETES
from conformance.cluster.ports import DriverPorts, Port
from conformance.cluster.state import ClusterRecord, StateRoot


class ClusterProperties:
    """The facts about one cluster, from its record."""

    def __init__(self, state: StateRoot, record: ClusterRecord) -> None:
        self._state, self.record = state, record
        self._driver_ports = DriverPorts(self.directory)

    @property
    def name(self) -> str:
        """Return the name of the cluster, which is unique within the checkout."""
        return self.record.name

    @property
    def uid(self) -> str:
        """Return a random identity that no other cluster has or had."""
        return self.record.uid

    @property
    def directory(self) -> Path:
        """Return the cluster's folder (mode 0700)."""
        return self._state.directory(self.name)

    @property
    def lock(self) -> Path:
        """Return the lock of processes that stop components for a moment."""
        return self.directory / "lock"

    @property
    def kubeconfig(self) -> Path:
        """Return an administrator's kubeconfig (mode 0600), in which the certificates are embedded."""
        return self.directory / "kubeconfig"

    @property
    def kubectl(self) -> Path:
        """Return a kubectl of the cluster's version or of a neighboring minor version."""
        return self.directory / "tools" / "kubectl"

    @property
    def server(self) -> str:
        """Return the URL of the API server."""
        return f"https://127.0.0.1:{self.ports[Port.APISERVER]}"

    @property
    def workspace(self) -> Path:
        """Return the folder in which kwokctl keeps the cluster: `logs/`, `pids/`, `pki/`."""
        return self.directory / "kwok" / "clusters" / self.name

    @property
    def pki(self) -> Path:
        """Return the folder with kwokctl's certificates: of the authority and of the components."""
        return self.workspace / "pki"

    @property
    def audit_log(self) -> Path:
        """Return the API server's audit log (JSON lines), which does not exist if the settings disable it."""
        return self.workspace / "logs" / "audit.log"

    @property
    def versions(self) -> dict[str, str]:
        """Map products to their versions. The version of Kubernetes is the one that the API server reports, which may
        be the user's own program."""
        served = {KUBERNETES: self.record.served} if self.record.served else {}
        return {**self.record.versions, **served}

    @property
    def ports(self) -> dict[Port, int]:
        """Return the ports of the components on 127.0.0.1."""
        ports = {port: self.record.ports + port for port in Port}
        if self.record.apiserver_port:
            ports[Port.APISERVER] = self.record.apiserver_port
        return ports

    def port(self, index: int) -> int:
        """Return the port with this index (from 0) of the ports on 127.0.0.1 that are reserved for drivers of
        implementations. Raises HarnessError if there is no port left."""
        return self._driver_ports.port(self.record.ports, index)

    def marker(self) -> dict[str, str]:
        """Return the two environment variables that mark a process as part of this cluster, so that the process ends
        with it."""
        return {processes.CLUSTER: self.uid, processes.STATE_ROOT: str(self._state.root)}
