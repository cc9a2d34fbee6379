"""The values of placeholders on one cluster, including the claimed ports."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from conformance.implementation import placeholders
from conformance.implementation.certificates import Certificates
from conformance.implementation.descriptor import Descriptor, Role


@dataclass(frozen=True)
class ClusterFacts:
    """The facts about a cluster that a driver needs."""

    kubeconfig: Path
    """The kubeconfig of the suite itself."""
    directory: Path
    """The cluster's folder. Logs are in `logs/`, everything else is in `implementation/`."""
    environment: Mapping[str, str]
    """Variables for every process. On a cluster of the suite, this is the marker by which `prune` finds the process."""
    port: Callable[[int], int]
    """Returns the n-th port (from 0) of 127.0.0.1 that is claimed for drivers. Raises HarnessError if none is left."""
    role_kubeconfig: Callable[[Role], Path] | None = None
    """Returns the kubeconfig of a role's own user; None if all roles use the suite's kubeconfig, as on an existing
    cluster."""
    run: str = ""
    """The run whose label is put on objects that are removed at the end of the run; empty on a cluster that ends with
    the run."""
    declared_rights: bool = False
    """Whether the user of a role has only the permissions that the descriptor declares."""


@dataclass(frozen=True)
class ProcessLocation:
    """The owners of the ports, the folder and the log of a process. `player` owns the ports, which the processes of one
    role share by name; `process` owns the folder and the log."""

    player: str
    process: str
    role: Role


class Values:
    """The values of placeholders for the processes of one driver."""

    def __init__(self, cluster: ClusterFacts, scheduler_name: str) -> None:
        self.cluster = cluster
        self.lease_namespace = ""
        """The namespace of the operator's Lease; empty without leader election."""
        self._scheduler_name = scheduler_name
        self._root = cluster.directory / "implementation"
        self._certificates = Certificates(self._root / "certificates")
        self._ports: dict[tuple[str, str], int] = {}

    def directory(self, process: str) -> Path:
        """Return the working directory of the process with this name."""
        return self._root / process

    def log(self, process: str) -> Path:
        """Return the log of the process with this name."""
        return self.cluster.directory / "logs" / f"{process}.log"

    def fill(self, location: ProcessLocation, source: Descriptor, text: str) -> str:
        """Replace the placeholders in a text of the descriptor `source`."""
        return placeholders.expand(text, lambda name: self.value(location, source, name))

    def value(self, location: ProcessLocation, source: Descriptor, name: str) -> str:
        """Return the value of a placeholder. Raises HarnessError if there is no port left for it."""
        family, _, suffix = name.partition(".")
        match family:
            case "kubeconfig":
                role_kubeconfig = self.cluster.role_kubeconfig
                return str(self.cluster.kubeconfig if role_kubeconfig is None else role_kubeconfig(location.role))
            case "schedulerName":
                return self._scheduler_name
            case "directory":
                return str(self.directory(location.process))
            case "certificates":
                return str(self._certificates.ensure())
            case "ca":
                return self._certificates.bundle()
            case "leaderElection":
                return "true" if self.lease_namespace else "false"
            case "leaseNamespace":
                return self.lease_namespace or "default"
            case "port":
                return str(self._port(location.player, suffix))
            case "file":
                return str(self.directory(location.process) / suffix)
            case _:
                value = source.static_value(name)
                assert value is not None, f"load has checked that {name} is known"
                return value

    def _port(self, player: str, name: str) -> int:
        """Return the port with this name. It stays the same after a restart, because webhook configurations contain
        it."""
        if (player, name) not in self._ports:
            self._ports[player, name] = self.cluster.port(len(self._ports))
        return self._ports[player, name]
