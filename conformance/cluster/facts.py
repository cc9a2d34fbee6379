"""The facts of a cluster that take no request: its names, paths, ports and the environment of its processes."""

from __future__ import annotations

from pathlib import Path

from conformance.cluster import processes
from conformance.cluster.pins import KUBERNETES
from conformance.cluster.ports import DriverPorts, Port
from conformance.cluster.state import ClusterRecord, StateRoot


class Facts:
    """The facts of one cluster, from its record."""

    def __init__(self, state: StateRoot, record: ClusterRecord) -> None:
        self._state, self.record = state, record
        self._driver_ports = DriverPorts(self.directory)

    @property
    def name(self) -> str:
        """Name of the cluster, unique within the checkout."""
        return self.record.name

    @property
    def uid(self) -> str:
        """Random identity that no other cluster has or had."""
        return self.record.uid

    @property
    def directory(self) -> Path:
        """The cluster's own folder (0700)."""
        return self._state.directory(self.name)

    @property
    def lock(self) -> Path:
        """The lock of processes that stop components for a moment."""
        return self.directory / "lock"

    @property
    def kubeconfig(self) -> Path:
        """An administrator's kubeconfig (0600) that contains its certificates."""
        return self.directory / "kubeconfig"

    @property
    def kubectl(self) -> Path:
        """A kubectl of the cluster's version, or of a neighboring minor."""
        return self.directory / "tools" / "kubectl"

    @property
    def server(self) -> str:
        """URL of the API server."""
        return f"https://127.0.0.1:{self.ports[Port.APISERVER]}"

    @property
    def workspace(self) -> Path:
        """The folder in which kwokctl keeps the cluster: `logs/`, `pids/`, `pki/`."""
        return self.directory / "kwok" / "clusters" / self.name

    @property
    def pki(self) -> Path:
        """The folder with kwokctl's certificates: those of the authority and of the components."""
        return self.workspace / "pki"

    @property
    def audit_log(self) -> Path:
        """The API server's audit log, JSON lines; absent if the settings turned it off."""
        return self.workspace / "logs" / "audit.log"

    @property
    def versions(self) -> dict[str, str]:
        """Product → version. That of Kubernetes is what the API server reports, which may be a program of the user's
        own."""
        served = {KUBERNETES: self.record.served} if self.record.served else {}
        return {**self.record.versions, **served}

    @property
    def ports(self) -> dict[Port, int]:
        """Ports of the components on 127.0.0.1."""
        ports = {port: self.record.ports + port for port in Port}
        if self.record.apiserver_port:
            ports[Port.APISERVER] = self.record.apiserver_port
        return ports

    def port(self, index: int) -> int:
        """The `index`-th (from 0) port of 127.0.0.1 that is kept free for drivers of implementations. Raises
        HarnessError if no port is left."""
        return self._driver_ports.port(self.record.ports, index)

    def marker(self) -> dict[str, str]:
        """The two environment variables that mark a process as part of this cluster: it ends with the cluster."""
        return {processes.CLUSTER: self.uid, processes.STATE_ROOT: str(self._state.root)}
